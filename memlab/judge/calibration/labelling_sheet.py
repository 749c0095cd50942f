"""A sheet for labels by hand: question, gold answer, response, and an empty column for the label.

The sheet shows neither verdicts nor the origin of a response, so that they cannot influence the labels.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from memlab.errors import Faults, MemlabError
from memlab.judge.calibration.agreement import Pair
from memlab.judge.cases import Case
from memlab.tables import text_hash
from memlab.text.display import sanitise_lines

COLUMNS = ("item", "question", "gold", "response", "label")

_LABELS = {"yes": True, "y": True, "right": True, "true": True, "1": True,
           "no": False, "n": False, "wrong": False, "false": False, "0": False}
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


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
    try:
        with path.open("x", newline="", encoding="utf-8-sig") as stream:  # Excel needs the mark to read UTF-8
            writer = csv.writer(stream)
            writer.writerow(COLUMNS)
            writer.writerows((name, *texts, "") for name, texts in rows.items())
    except FileExistsError:
        raise MemlabError("the file exists already, perhaps with labels in it", where=str(path),
                          fix="give another name, or move it away") from None
    except OSError as fault:
        raise MemlabError(f"cannot be written ({fault.strerror})", where=str(path)) from fault
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
