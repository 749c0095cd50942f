"""Labels by hand: a sheet to write them into, and the agreement of a judge's verdicts with them.

A sheet holds question, gold answer, response, and an empty column for the label. It shows neither verdicts nor the
origin of a response, so that they cannot influence the labels.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memlab.evaluate.statistics import LEVEL, Interval, wilson
from memlab.pipeline.tables import text_hash
from memlab.stages.judge.cases import Case
from memlab.support.errors import Faults, MemlabError
from memlab.support.files import atomic_write
from memlab.support.text.display import safe_text

Share = dict[str, float | int | None]
"""A share in a report: value, low, high (95 %), n; value, low and high are null if n is 0."""


class Pair(NamedTuple):
    """The truth and the verdict on it; pairs of one group (a question) depend on one another."""

    group: int
    truth: bool
    verdict: bool


def share(hits: int, n: int) -> Share:
    """Return a share with its Wilson interval."""
    low, high = wilson(hits, n) or (None, None)
    return {"value": hits / n if n else None, "low": low, "high": high, "n": n}


def sensitivity(pairs: Sequence[Pair]) -> Share:
    """Return the share of right answers that are called right."""
    return share(sum(p.verdict for p in pairs if p.truth), sum(p.truth for p in pairs))


def specificity(pairs: Sequence[Pair]) -> Share:
    """Return the share of wrong answers that are called wrong."""
    return share(sum(not p.verdict for p in pairs if not p.truth), sum(not p.truth for p in pairs))


def kappa(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Cohen's kappa (Educ. Psychol. Meas. 1960) of tables (..., 4) that count (yes yes, yes no, no yes, no no).

    (observed - expected) / (1 - expected) agreement, expected from the margins; NaN if all truths and all verdicts are
    the same.

    >>> float(kappa(np.array([20.0, 5, 10, 15])))
    0.4
    """
    a, b, c, d = np.moveaxis(np.asarray(table, np.float64), -1, 0)
    n = a + b + c + d
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = ((a + b) * (a + c) + (c + d) * (b + d)) / n**2
        return np.round(((a + d) / n - expected) / (1 - expected), 12)


def kappa_of(pairs: Sequence[Pair], seed: int = 0, resamples: int = 2_000, level: float = LEVEL) -> Share:
    """Return kappa of truth and verdicts, with the percentile bootstrap interval over groups; null if undefined.

    2,000 resamples determine the bounds to about .005. Whole questions are drawn, because the answers to one question
    are not independent. Resamples in which kappa is undefined are left out.
    """
    empty: Share = {"value": None, "low": None, "high": None, "n": len(pairs)}
    if not pairs:
        return empty
    _, at = np.unique([p.group for p in pairs], return_inverse=True)
    cell = np.array([(0 if p.verdict else 1) if p.truth else (2 if p.verdict else 3) for p in pairs])
    groups = int(at.max()) + 1
    counts = np.bincount(at * 4 + cell, minlength=groups * 4).reshape(groups, 4).astype(np.float64)
    value = float(kappa(counts.sum(axis=0)))
    if np.isnan(value):
        return empty
    low, high = _bootstrap(counts, seed, resamples, level) or (None, None)
    return {**empty, "value": value, "low": low, "high": high}


def _bootstrap(counts: NDArray[np.float64], seed: int, resamples: int, level: float) -> Interval:
    if len(counts) < 2:
        return None
    weights = np.random.default_rng(seed).multinomial(len(counts), np.full(len(counts), 1 / len(counts)), resamples)
    kappas = kappa(weights @ counts)
    kappas = kappas[~np.isnan(kappas)]
    if not len(kappas):
        return None
    low, high = np.quantile(kappas, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def agreement(pairs: Sequence[Pair], seed: int = 0) -> dict[str, Share]:
    """Return kappa, sensitivity and specificity of verdicts."""
    return {"kappa": kappa_of(pairs, seed), "sensitivity": sensitivity(pairs), "specificity": specificity(pairs)}


COLUMNS = ("item", "question", "gold", "response", "label")

_LABELS = {"yes": True, "y": True, "right": True, "true": True, "1": True,
           "no": False, "n": False, "wrong": False, "false": False, "0": False}
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


class Labels(NamedTuple):
    """The labels by item, and the number of items without one."""

    right: dict[str, bool]
    open: int


def item_id(case: Case) -> str:
    """Return an id made from a case's texts: a sheet fits any run with the same responses to the same questions.

    The id begins with a letter, so that no spreadsheet reads it as a number.
    """
    return "i" + text_hash("\x00".join((case.text, case.gold or "", case.response)))[:15]


def safe_cell(text: str) -> str:
    """Return a text as a cell without invisible characters that no spreadsheet reads as a formula.

    >>> safe_cell("=1+1"), safe_cell(" @cmd"), safe_cell("4 hours")
    ("'=1+1", "' @cmd", '4 hours')
    """
    cell = safe_text(text)
    return "'" + cell if cell.lstrip().startswith(_FORMULA) else cell


def write_sheet(path: Path, judged: Iterable[Case]) -> int:
    """Write one row per distinct item and return their number; raise MemlabError if the file exists."""
    rows = {item_id(case): map(safe_cell, (case.text, case.gold or "", case.response)) for case in judged}
    if os.path.lexists(path):
        raise MemlabError("the file exists already, perhaps with labels in it", where=str(path),
                          fix="give another name, or move it away")
    sheet = io.StringIO()
    writer = csv.writer(sheet)
    writer.writerow(COLUMNS)
    writer.writerows((name, *texts, "") for name, texts in rows.items())
    atomic_write(path, sheet.getvalue().encode("utf-8-sig"))  # Excel needs the mark to read UTF-8
    return len(rows)


def read_sheet(path: Path) -> Labels:
    """Read the labels: yes or no (y, n, right, wrong, true, false, 1, 0); raise Faults with every bad line."""
    right: dict[str, bool] = {}
    faults: list[str] = []
    unlabelled = 0
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            head = stream.readline()
            stream.seek(0)
            rows = csv.DictReader(stream, delimiter=";" if head.count(";") > head.count(",") else ",")
            missing = {"item", "label"} - set(rows.fieldnames or ())
            if missing:
                raise MemlabError(f"there is no column {' or '.join(sorted(missing))}", where=str(path),
                                  fix="keep the first line as it was written")
            for row in rows:
                label, name = (row["label"] or "").strip().lower(), (row["item"] or "").strip()
                if not label:
                    unlabelled += 1
                elif label not in _LABELS:
                    faults.append(f"{path}, line {rows.line_num}, column label: expected yes or no, got '{label}'")
                elif right.setdefault(name, _LABELS[label]) != _LABELS[label]:
                    faults.append(f"{path}, line {rows.line_num}: item {name} has two different labels")
    except (OSError, UnicodeDecodeError, csv.Error) as fault:
        raise MemlabError(f"cannot be read ({fault})", where=str(path), fix="save it as CSV in UTF-8") from fault
    if faults:
        raise Faults(faults)
    return Labels(right, unlabelled)


def pair_with_labels(labels: Mapping[str, bool], judged: Sequence[Case], verdicts: Sequence[bool | None]
                     ) -> list[Pair]:
    """Pair labels by hand (the truth) with a judge's verdicts; leave out items without a label or a verdict."""
    pairs = {}
    for case, verdict in zip(judged, verdicts, strict=True):
        name = item_id(case)
        if name in labels and verdict is not None:
            pairs[name] = Pair(int(text_hash(case.text)[:12], 16), labels[name], verdict)
    return list(pairs.values())
