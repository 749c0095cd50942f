"""Sensitivity, specificity, kappa and the leniency curve of judges whose faults are known."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from memlab.errors import Faults, MemlabError
from memlab.judge.calibrate import (
    Pair,
    as_tables,
    calibrate,
    item_id,
    judge_answers,
    kappa,
    kappa_of,
    main,
    pair_with_labels,
    read_sheet,
    safe_cell,
    sample,
    sensitivity,
    specificity,
    write_sheet,
)
from memlab.judge.cases import Case, cases
from memlab.judge.llm import LlmJudge
from memlab.judge.rules import Contains
from memlab.judge.synthetic_answers import WRONG, make_answers
from memlab.store import Store
from tests.judge.test_synthetic_answers import ROWS
from tests.judge.worlds import says, world


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


def test_a_judge_that_says_yes_to_all_is_flagged(tmp_path: Path) -> None:
    tables, made = world(ROWS), make_answers(world(ROWS))
    said = judge_answers(LlmJudge(chat=says("yes")), tables, made, Store(tmp_path))["longmemeval_style"]
    found = calibrate(made, said)
    assert (found["sensitivity"]["value"], found["specificity"]["value"]) == (1.0, 0.0)
    assert found["kappa"]["value"] == 0.0
    assert [step["kind"] for step in found["leniency"]] == list(WRONG)
    assert {step["value"] for step in found["leniency"]} == {1.0, None}
    assert found["flagged"]


def test_a_judge_that_knows_is_perfect_and_silence_is_counted(tmp_path: Path) -> None:
    tables, made = world(ROWS), make_answers(world(ROWS))
    perfect = calibrate(made, [f.right for f in made.answers])
    assert perfect["kappa"]["value"] == perfect["specificity"]["value"] == perfect["sensitivity"]["value"] == 1.0
    assert not perfect["flagged"]
    silent = calibrate(made, [None] * len(made.answers))
    assert silent["unreadable"] == silent["items"] == len(made.answers)
    assert silent["specificity"]["value"] is None
    assert silent["flagged"]
    strict = LlmJudge(chat=says("Hm"), name="strict", style="strict")
    mumbles = judge_answers(strict, tables, made, Store(tmp_path))["strict"]
    assert mumbles == [None] * len(made.answers)


def test_every_synthetic_answer_is_put_to_its_own_question(tmp_path: Path) -> None:
    tables, made = world(ROWS), make_answers(world(ROWS))
    for case, answer in zip(cases(as_tables(tables, made.answers)), made.answers, strict=True):
        assert (case.text, case.gold, case.category, case.abstain) == ROWS[answer.question][:4]
        assert case.response == answer.text
    lenient = calibrate(made, judge_answers(Contains(), tables, made, Store(tmp_path))["contains"])
    assert lenient["specificity"]["value"] == 1.0
    assert lenient["kinds"]["reordered"]["value"] == 0.0


def test_a_sample_keeps_whole_questions() -> None:
    made = make_answers(world(ROWS))
    some = sample(made, 3, seed=4)
    questions = {f.question for f in some.answers}
    assert len(questions) == 3
    assert some.answers == [f for f in made.answers if f.question in questions]
    assert sample(made, None) is made


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


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, sheet = tmp_path / "c.json", tmp_path / "s.csv"
    words = ["--data", "synthetic", "--judge", "contains", "--limit", "20", "--out", str(out), "--store",
             str(tmp_path / "store")]
    assert main([*words, "--sheet", str(sheet), "--sheet-size", "12"]) == 0
    said = capsys.readouterr().out
    assert "12 rows to label" in said
    assert "specificity" in said
    figures = json.loads(out.read_text())["judges"]["contains"]
    assert figures["specificity"]["value"] == 1.0
    assert not figures["flagged"]
    rows = list(csv.DictReader(sheet.open(encoding="utf-8-sig", newline="")))
    sheet.unlink()
    with sheet.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(row | {"label": "yes" if i % 2 else "no"} for i, row in enumerate(rows))
    assert main([*words, "--labels", str(sheet)]) == 0
    assert json.loads(out.read_text())["judges"]["contains"]["against_people"]["kappa"]["n"] == 12
    assert main([*words[:-2], "--judge", "conains"]) == 1
    assert "did you mean 'contains'" in capsys.readouterr().err
