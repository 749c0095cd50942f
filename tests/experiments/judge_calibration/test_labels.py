"""Sheets of labels, and sensitivity, specificity and kappa of verdicts by hand."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from judge_calibration.labels import (
    Pair,
    item_id,
    kappa,
    kappa_of,
    pair_with_labels,
    read_sheet,
    safe_cell,
    sensitivity,
    specificity,
    write_sheet,
)

from memlab.stages.judge.cases import Case
from memlab.support.errors import Faults, MemlabError


def test_kappa_by_hand() -> None:
    # 45 agree yes, 15 and 25 disagree, 15 agree no: observed .6, expected .6*.7 + .4*.3 = .54
    assert float(kappa(np.array([45, 15, 25, 15]))) == pytest.approx(0.06 / 0.46)
    assert float(kappa(np.array([30, 0, 0, 70]))) == 1.0
    assert float(kappa(np.array([0, 50, 50, 0]))) == -1.0
    assert np.isnan(kappa(np.array([10, 0, 0, 0])))


def test_shares_and_interval() -> None:
    pairs = [Pair(i, i % 2 == 0, i % 2 == 0 or i % 10 == 1) for i in range(100)]
    assert sensitivity(pairs)["value"] == 1.0
    assert specificity(pairs)["value"] == pytest.approx(0.8)
    found = kappa_of(pairs)
    assert found["value"] == pytest.approx(0.8)  # observed .9, expected .5
    low, high = found["low"], found["high"]
    assert low is not None
    assert high is not None
    assert 0.6 < low < 0.8 < high < 0.95
    assert kappa_of(pairs) == found
    one_question = kappa_of([p._replace(group=0) for p in pairs])
    assert (one_question["value"], one_question["low"]) == (found["value"], None)  # a single question has no spread
    wider = kappa_of([p._replace(group=p.group // 10) for p in pairs])
    assert wider["value"] == found["value"]
    assert kappa_of([])["value"] is None
    assert kappa_of([Pair(0, True, True)] * 3)["value"] is None


pytestmark = pytest.mark.nightly

CASES = [Case(i, f"q{i}?", "=1+1", "t", False, r) for i, r in enumerate(
    ["=HYPERLINK(\"http://x\")", "+1", "-1", "@SUM(A1)", "\t=1", "plain, with \"quotes\"\nand lines", "\x1b[31mred"])]


def test_no_cell_of_the_sheet_is_a_formula(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    assert write_sheet(path, [*CASES, CASES[0]]) == len(CASES)
    with path.open(newline="", encoding="utf-8-sig") as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == ["item", "question", "gold", "response", "label"]
    assert all(not cell.lstrip().startswith(("=", "+", "-", "@")) for row in rows for cell in row)
    assert all("\x1b" not in cell and row[-1] == "" for row in rows[1:] for cell in row)
    assert rows[6][3] == CASES[5].response
    assert safe_cell("a=b") == "a=b"
    assert safe_cell("＝1+1") == "'＝1+1"  # as Excel reads it in Japanese and Chinese
    with pytest.raises(MemlabError, match="already, perhaps with labels"):
        write_sheet(path, CASES)


def labelled(path: Path, labels: list[str], delimiter: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, delimiter=delimiter)
        writer.writerow(["item", "question", "gold", "response", "label"])
        writer.writerows([item_id(case), "", "", "", label] for case, label in zip(CASES, labels))
    return path


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_labels_come_back(tmp_path: Path, delimiter: str) -> None:
    path = labelled(tmp_path / "l.csv", ["yes", "N", " Wrong ", "1", "", "right", "0"], delimiter)
    found = read_sheet(path)
    assert found.open == 1
    assert [found.right.get(item_id(case)) for case in CASES] == [True, False, False, True, None, True, False]
    pairs = pair_with_labels(found.right, CASES, [True, False, True, None, True, True, False])
    assert [(p.truth, p.verdict) for p in pairs] == [(True, True), (False, False), (False, True), (True, True),
                                                  (False, False)]


def test_bad_labels_are_told_by_line(tmp_path: Path) -> None:
    path = labelled(tmp_path / "l.csv", ["maybe", "yes", "x"])
    with pytest.raises(Faults) as told:
        read_sheet(path)
    assert [f"line {n}, column label" in fault for n, fault in zip((2, 4), told.value.faults)] == [True, True]
    path.write_text("a,b\n1,2\n")
    with pytest.raises(MemlabError, match="no column item or label"):
        read_sheet(path)
    with pytest.raises(MemlabError, match="cannot be read"):
        read_sheet(tmp_path / "absent.csv")
