"""Calibration of a judge, by synthetic answers or a sheet of labels: ``memlab judge calibrate``.

A sheet for labels by hand holds question, gold answer, response, and an empty column for the label. It shows neither
verdicts nor the origin of a response, so that they cannot influence the labels.

``memlab judge calibrate --data locomo --judge strict --chat NAME`` runs any judge over synthetic answers,
which are right or wrong by construction, and prints sensitivity, specificity by kind of answer, kappa, and the
leniency curve.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import Faults, MemlabError
from memlab.evaluate.statistics import LEVEL, Interval, wilson
from memlab.judge import command
from memlab.judge.accuracy import CALIBRATION_FILE, MIN_SPECIFICITY, bias, decimal, needs_warning, read_judges
from memlab.judge.cases import Case, cases
from memlab.judge.synthetic_answers import RIGHT, WRONG, CalibrationSet, SyntheticAnswer, make_answers
from memlab.runtime.files import atomic_write
from memlab.runtime.help_text import Parser
from memlab.runtime.paths import path_argument
from memlab.runtime.terminal import print
from memlab.stage import Stage
from memlab.store import Store
from memlab.tables import Notes, Tables, add_texts, frame, text_hash
from memlab.text.display import plural, sanitise, sanitise_lines

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
    cell = sanitise_lines(text)
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


def as_tables(tables: Tables, answers: Sequence[SyntheticAnswer]) -> Tables:
    """Make each answer a question of its own, numbered by position, so that any judge can read them."""
    rows = pl.DataFrame({"question": [a.question for a in answers]}, schema={"question": pl.Int32})
    numbers = pl.Series("question", range(len(answers)), dtype=pl.Int32)

    def of_each_answer(name: str) -> pl.DataFrame:
        joined = rows.join(tables[name], on="question", how="left", maintain_order="left")
        return joined.with_columns(numbers).select(tables[name].columns)

    ids, texts = add_texts(tables["texts"], [a.text for a in answers])
    table = frame("answers", {"question": numbers, "sample": [0] * len(answers), "text_id": ids})
    return Tables(questions=of_each_answer("questions"), gold=of_each_answer("gold"), answers=table, texts=texts)


def judge_answers(judge: Stage, tables: Tables, kit: CalibrationSet, store: Store, notes: Notes | None = None
                  ) -> dict[str, list[bool | None]]:
    """Return, for each judge's name, its verdict on each synthetic answer (null: no verdict).

    What the judges count, such as empty replies, is added to ``notes``.
    """
    notes = Notes() if notes is None else notes
    verdicts = notes.include(judge.run(as_tables(tables, kit.answers).only(judge.reads), store))["verdicts"]
    return {name: verdicts.filter(judge=name).sort("question")["correct"].to_list()
            for name in verdicts["judge"].unique(maintain_order=True)}


def calibrate(kit: CalibrationSet, verdicts: Sequence[bool | None], seed: int = 0) -> dict[str, Any]:
    """Summarise one judge's verdicts; answers without a verdict are counted and left out of every share.

    ``kinds`` holds the share of correct verdicts for each kind of answer. ``leniency`` holds the share of answers that
    were judged right, for each kind of wrong answer, from the plainly wrong to the nearly right.
    """
    judged = [(a, verdict) for a, verdict in zip(kit.answers, verdicts, strict=True) if verdict is not None]
    pairs = [Pair(a.question, a.right, verdict) for a, verdict in judged]
    by_kind = {kind: [verdict for a, verdict in judged if a.kind == kind] for kind in (*WRONG, *RIGHT)}
    figures = agreement(pairs, seed)
    return {
        "items": len(kit.answers), "unreadable": len(kit.answers) - len(judged),
        **figures,
        "kinds": {kind: share(values.count(kind in RIGHT), len(values)) for kind, values in by_kind.items()},
        "leniency": [{"kind": kind, **share(sum(by_kind[kind]), len(by_kind[kind]))} for kind in WRONG],
        "skipped": kit.skipped, "least_specificity": MIN_SPECIFICITY,
        "flagged": needs_warning(figures["specificity"]["value"]),
    }


def sample(kit: CalibrationSet, limit: int | None, seed: int = 0) -> CalibrationSet:
    """Keep the answers to ``limit`` questions, sampled with the seed."""
    questions = sorted({a.question for a in kit.answers})
    if limit is None or limit >= len(questions):
        return kit
    sampled = set(random.Random(seed).sample(questions, limit))  # noqa: S311 - draws, not secrets
    return CalibrationSet([a for a in kit.answers if a.question in sampled], kit.skipped)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0 if all is well, 1 with a message if not."""
    parser = Parser(prog="memlab judge calibrate", description=__doc__)
    command.add_arguments(parser)
    parser.add_argument("--limit", type=int, metavar="N", help="answers to N questions only, sampled with the seed")
    parser.add_argument("--seed", type=int, default=0, help="seed of answers, sample and resamples (default 0)")
    parser.add_argument("--out", type=path_argument, default=Path("runs") / CALIBRATION_FILE, metavar="JSON",
                        help=f"where the figures go (default runs/{CALIBRATION_FILE})")
    parser.add_argument("--sheet-size", type=int, default=100, metavar="N", help="rows of the sheet (default 100)")
    return command.run(parser, arguments, _run)


def _run(args: argparse.Namespace, fields: dict[str, str]) -> int:
    judges = read_judges(args.out)  # other judges' figures stay
    judge = command.make_judge(args.judge, args.chat, fields, args.judge_fields)
    tables = command.load(args.data, args.path)
    kit = sample(make_answers(tables, args.seed), args.limit, args.seed)
    items = cases(as_tables(tables, kit.answers))
    labels = read_sheet(args.labels).right if args.labels else None
    if args.sheet:
        sampled = random.Random(args.seed).sample(items, min(args.sheet_size, len(items)))  # noqa: S311
        print(f"{plural(write_sheet(args.sheet, sampled), 'row')} to label: {sanitise(str(args.sheet))}")
    notes = Notes()
    for name, verdicts in judge_answers(judge, tables, kit, Store(args.store), notes).items():
        summary = calibrate(kit, verdicts, args.seed)
        if labels is not None:
            summary["against_people"] = agreement(pair_with_labels(labels, items, verdicts), args.seed)
        warnings = {what: number for what, number, _ in notes.table().iter_rows() if what.startswith(f"judge {name}: ")}
        judges[name] = {"data": args.data, "seed": args.seed, "limit": args.limit, "told": warnings, **summary}
        print(f"judge {sanitise(name)} on {sanitise(args.data)}, {summary['items']:,} synthetic answers")
        print("\n".join([*_lines(summary), *(f"  {sanitise(what)}: {number:,}" for what, number in warnings.items())]))
    atomic_write(args.out, json.dumps({"judges": judges}, indent=1) + "\n")
    print(f"figures: {sanitise(str(args.out))}")
    return 0


def _lines(summary: Mapping[str, Any]) -> list[str]:
    lines = [_line(name, summary[name]) for name in ("sensitivity", "specificity", "kappa")]
    for title, kinds in (("wrong answers judged wrong", WRONG), ("right answers judged right", RIGHT)):
        lines.append(f"  {title}, by kind (in brackets: questions without such an answer)")
        lines += [_line(f"  {kind}", summary["kinds"][kind], f" ({summary['skipped'][kind]})") for kind in kinds]
    against_people = summary.get("against_people", {})
    lines += [_line(f"{name} against labels by hand", value) for name, value in against_people.items()]
    if summary["unreadable"]:
        lines.append(f"  {summary['unreadable']} without a verdict, left out of every share")
    if summary["flagged"]:
        least = summary["least_specificity"]
        off = bias(summary["specificity"]["value"], summary["sensitivity"]["value"])
        lines.append(f"  FLAGGED: specificity below {least}, so that accuracies by this judge are {off}")
    return lines


def _line(name: str, figure: Share, note: str = "") -> str:
    if figure["value"] is None:
        return f"  {name:<14} -{note}"
    span = "" if figure["low"] is None else f" ({decimal(figure['low'])} to {decimal(figure['high'])})"
    return f"  {name:<14} {decimal(figure['value'])}{span}, n = {figure['n']}{note}"
