"""Why answers are wrong, as the report shows it: every question is counted once in each table."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from memlab.evaluate.attribution import BEYOND, NOISE, STEADY
from memlab.harness.results import read_arm
from memlab.report.build import build
from memlab.report.sections import DECLINE, attribution_tables
from memlab.tables import frame
from tests.report.samples import make_runs
from tests.sealing import seal

ROWS = [  # question, reached, right, sampled, cause
    (0, "shown", True, True, STEADY), (1, "shown", False, True, BEYOND), (2, "cut by K", False, True, "cut by K"),
    (3, "shown", False, False, None), (4, None, False, True, NOISE), (5, "cut by K", True, True, "cut by K"),
]


def attribution() -> pl.DataFrame:
    return frame("attribution", {
        "question": [r[0] for r in ROWS] * 2, "view": ["all"] * 6 + ["any"] * 6,
        "reached": [r[1] for r in ROWS] * 2, "right": [r[2] for r in ROWS] * 2, "sampled": [r[3] for r in ROWS] * 2,
        "cause": [r[4] for r in ROWS] * 2})


def test_the_page_the_markdown_and_the_tables_agree(tmp_path: Path) -> None:
    folder = make_runs(tmp_path / "attribution" / "synthetic", questions=6, arms=("gap",))
    (place,) = folder.glob("gap-*")
    attribution().write_parquet(place / "attribution.parquet")
    seal(place)
    arm = read_arm(place)
    tables = {one.caption.removeprefix("gap, "): one for one in attribution_tables([arm])}
    assert [*tables] == [f"{view} evidence: {what}" for view in ("any", "all") for what in (
        "how far it got", "causes", "wrong answers by question type")]
    causes = tables["any evidence: causes"]
    assert causes.head == ("cause", "wrong answers, of 3 sampled", "right answers, of 2 sampled")
    assert causes.rows == ((NOISE, "1", "0"), ("cut by K", "1", "1"), (BEYOND, "1", "0"), (STEADY, "0", "1"))
    words = tables["all evidence: causes"].remark
    assert words == "gap, all evidence: 1 of 3 wrong answers lack evidence, 2 do not."
    far = tables["all evidence: how far it got"]
    assert far.rows == (("shown", "1", "2"), ("cut by K", "1", "1"), (DECLINE, "0", "1"))  # all six questions, once
    # wrong: 1 (how many marathons, multi-session), 2 (when, temporal), 4 (could you suggest, preference)
    kinds = tables["any evidence: wrong answers by question type"]
    assert kinds.head[1:] == tuple(f"{kind} (n = 1)" for kind in (
        "multi-session", "single-session-preference", "temporal-reasoning"))
    assert kinds.rows == ((NOISE, "0", "1", "0"), ("cut by K", "0", "0", "1"), (BEYOND, "1", "0", "0"))
    built = build(folder)
    page = built.html.read_text(encoding="utf-8")
    assert "gap, any evidence: wrong answers by question type" in page
    assert words in page
    text = built.markdown.read_text(encoding="utf-8").replace("\\", "")
    assert words in text
    assert "| cut by K | 1 | 1 |" in text.partition("how far it got")[2]
    assert "| cut by K | 0 | 0 | 1 |" in text.partition("wrong answers by question type")[2]


def test_causes_of_questions_of_one_type_are_not_split(tmp_path: Path) -> None:
    folder = make_runs(tmp_path / "attribution" / "synthetic", questions=6, arms=("gap",))
    (place,) = folder.glob("gap-*")
    attribution().filter(question=2).write_parquet(place / "attribution.parquet")
    seal(place)
    tables = attribution_tables([read_arm(place)])
    assert [one.caption for one in tables] == ["gap, any evidence: how far it got", "gap, any evidence: causes",
                                               "gap, all evidence: how far it got", "gap, all evidence: causes"]
    assert tables[-1].rows == (("cut by K", "1", "0"),)


def test_without_attribution_there_is_no_section(tmp_path: Path) -> None:
    folder = make_runs(tmp_path / "x" / "synthetic", questions=6, arms=("gap",))
    assert 'id="why"' not in build(folder).html.read_text(encoding="utf-8")
