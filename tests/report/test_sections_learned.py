from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest

from memlab.harness.results import ArmRun
from memlab.report import sections
from memlab.report.build import ReportFiles
from memlab.report.drill_down import drill_down
from memlab.report.html import page
from memlab.text.display import format_signed


def of(arms: tuple[ArmRun, ...], name: str) -> ArmRun:
    return next(arm for arm in arms if arm.name == name)


def test_arms_with_the_same_importances_share_a_table(arms: tuple[ArmRun, ...]) -> None:
    (table,) = sections.importance_tables(arms)
    assert set(table.caption.split(", ")) == {"gap", "by_type"}
    assert [row[1:] for row in table.rows] == [("50.0 %",), ("25.0 %",), ("5.0 %",)]
    assert "\u202e" not in table.rows[2][0]
    other = replace(of(arms, "gap"), name="other", manifest={"importances": [{"feature": "a", "share": 1.0}]})
    assert [t.caption for t in sections.importance_tables([of(arms, "by_type"), other])] == ["by_type", "other"]


def test_a_manifest_without_importances_shows_none(arms: tuple[ArmRun, ...]) -> None:
    assert sections.importance_tables([replace(arms[0], manifest={"importances": []})]) == []


def test_a_reason_adds_up_to_the_lead(arms: tuple[ArmRun, ...]) -> None:
    arm = of(arms, "gap")
    ranking = arm.ranking.filter(question=7).sort("rank")
    reason = sections.reasons(arm)[7]
    assert reason.turns == (ranking["session"][0], 0, ranking["session"][1], 0)
    expected = sum(ranking[signal][0] - ranking[signal][1] for signal in ("dense:turn", "lexical:session", "tokens"))
    assert reason.lead == pytest.approx(expected + .25, abs=1e-5)
    assert reason.words.endswith(f"lead {format_signed(reason.lead)}")
    assert sections.reasons(of(arms, "fixed_10")) == {}


def test_the_questions_view_has_each_reason_once_for_all_arms_that_share_it(arms: tuple[ArmRun, ...]) -> None:
    data = drill_down(arms, ["selected/session/recall_all"])
    which = [0 if arm.name in ("gap", "by_type") else None for arm in arms]
    assert len(data["features"]) == 3
    for entry in data["questions"]:
        assert entry["reasons"]["which"] == which
        ((session, _, other, _, rows, others),) = entry["reasons"]["list"]
        first = entry["rankings"][entry["which"][which.index(0)][0]]
        assert (session, other, others) == (first[0][1], first[1][1], .25)
        assert [data["features"][row[0]] for row in rows[:2]] == ["z dense", "z lexical"]
    without = drill_down([of(arms, "fixed_10")], ["selected/session/recall_all"])
    assert without["features"] == []
    assert not any("reasons" in entry for entry in without["questions"])


def test_page_and_document_show_both_and_foreign_names_as_text(report: ReportFiles) -> None:
    text, document = report.html.read_text(), report.markdown.read_text()
    assert '<details id="importances"' in text
    assert "&lt;img src=x" in text
    assert "<img" not in text
    section = document.split("## Feature importances")[1].split("\n## ")[0]
    assert "| z dense | 50.0 % |" in section
    assert "&lt;img src=x onerror" in section
    assert "<img" not in section
    assert "| all others |  |  | +0.250 |" in section
    assert "a\\|b" in section


def test_without_learned_fusion_there_is_no_section(report: ReportFiles, arms: tuple[ArmRun, ...]) -> None:
    one = of(arms, "fixed_10")
    comparison = json.loads(json.dumps(report.comparison))
    comparison |= {"arms": {one.name: report.comparison["arms"][one.name]}, "contrasts": [], "exploratory": []}
    assert 'id="importances"' not in page(comparison, [one])
    assert sections.example([one]) == []


def test_the_example_is_the_first_question(arms: tuple[ArmRun, ...]) -> None:
    (table,) = sections.example(arms)
    question = arms[0].questions.filter(pl.col("question") == 0)["text"].item()
    reason = next(sections.reasons(of(arms, name))[0] for name in ("gap", "by_type") if f"of {name}," in table.caption)
    assert f"“{question}”: {reason.words}" in table.caption
    assert [row[0] for row in table.rows] == [*(row[0] for row in reason.rows), "all others"]
