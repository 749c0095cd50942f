"""Why answers are wrong, as the report shows it: every question flows once, and the tables say the same."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from memlab.evaluate.attribution import BEYOND, NOISE, STEADY
from memlab.harness.results import read_arm
from memlab.report.build import build
from memlab.report.sections import DECLINE, causes, flows, sankey
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


def test_every_question_flows_once_through_each_column() -> None:
    links = flows(attribution(), "all")
    assert {b: n for (a, b), n in links.items() if a == "questions"} == {"shown": 3, "cut by K": 2, DECLINE: 1}
    assert sum(n for (_, b), n in links.items() if b in ("right", "wrong")) == 6
    wrong = {b: n for (a, b), n in links.items() if a == "wrong"}
    assert wrong == {BEYOND: 1, "cut by K": 1, "not sampled": 1, NOISE: 1}


def test_the_page_the_markdown_and_the_tables_agree(tmp_path: Path) -> None:
    folder = make_runs(tmp_path / "attribution" / "synthetic", questions=6, arms=("gap",))
    (place,) = folder.glob("gap-*")
    attribution().write_parquet(place / "attribution.parquet")
    seal(place)
    arm = read_arm(place)
    found = causes([arm])
    assert [(c.view, c.wrong, c.right) for c in found] == [("any", 3, 2), ("all", 3, 2)]
    assert found[0].rows == ((NOISE, 1, 0), ("cut by K", 1, 1), (BEYOND, 1, 0), (STEADY, 0, 1))
    assert found[1].words == "gap, all evidence: 1 of 3 wrong answers lack evidence, 2 do not"
    diagram = sankey([arm])["gap, all"]["data"][0]
    labels, link = diagram["node"]["label"], diagram["link"]
    assert labels.count("cut by K") == 2  # where evidence got stuck, and the cause
    assert sum(v for s, v in zip(link["source"], link["value"]) if labels[s] == "questions") == 6
    assert len(link["color"]) == len(link["value"])
    built = build(folder)
    assert found[1].words in built.html.read_text(encoding="utf-8")
    assert found[1].words in built.markdown.read_text(encoding="utf-8").replace("\\", "")


def test_without_attribution_there_is_no_section(tmp_path: Path) -> None:
    folder = make_runs(tmp_path / "x" / "synthetic", questions=6, arms=("gap",))
    assert 'id="why"' not in build(folder).html.read_text(encoding="utf-8")
