from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from memlab.harness.results import ArmRun, finished_arms
from memlab.report.html import page
from memlab.report.markdown import document
from memlab.report.sections import by_type, class_tables, type_tables, types
from tests.sealing import seal


def classed(folder: Path, **classes: list[str]) -> tuple[ArmRun, ...]:
    """The finished arms, these of which (by name) have classes, a question each in turn."""
    for arm in finished_arms(folder).arms:
        if arm.name in classes:
            names = classes[arm.name]
            asked = arm.questions["question"]
            rows = pl.DataFrame({"question": asked, "class": [names[i % len(names)] for i in range(len(asked))]})
            rows.write_parquet(arm.folder / "classes.parquet")
            seal(arm.folder)
    return finished_arms(folder).arms


SIX = ["factual", "counting", "temporal", "factual", "preference", "assistant"]
"""What would be right for the six types of the made-up questions, but for an update taken for a fact."""


def test_arms_with_the_same_classes_share_a_table(runs: Path) -> None:
    arms = classed(runs, fixed_10=SIX, gap=SIX, by_type=["general"])
    two, one = class_tables(arms)  # by_type comes first
    assert one.caption.endswith("(fixed_10, gap): 50 of 60 questions (83%) have a class that fits their type")
    assert one.head == ("type", "counting", "temporal", "preference", "assistant", "factual", "fits", "n")
    assert ("knowledge-update", "0", "0", "0", "0", "10", "0", "10") in one.rows
    assert ("multi-session", "10", "0", "0", "0", "0", "10", "10") in one.rows
    assert "(by_type): 10 of 60 questions" in two.caption
    assert two.head == ("type", "general", "fits", "n")


def test_arms_without_classes_have_no_table(runs: Path) -> None:
    assert class_tables(finished_arms(runs).arms) == []


def test_the_classifier_is_named_and_all_arms_are_one_word(runs: Path) -> None:
    arm = classed(runs, gap=SIX)[0]
    gap = next(a for a in classed(runs, gap=SIX) if a.name == "gap")
    named = replace(gap, manifest={**gap.manifest, "pipeline": {"classify": {"is": "memlab.Rules"}}})
    (one,) = class_tables([named])
    assert one.caption.startswith("rules (all arms): 50 of 60")
    assert arm.classes.is_empty()


def test_html_and_markdown_tell_the_same_once(runs: Path, report) -> None:
    arms = classed(runs, fixed_10=SIX, gap=SIX)
    html, text = page(report.comparison, arms), document(report.comparison, arms)
    assert html.count('id="classes"') == 1
    assert html.count("<caption>classes (fixed_10, gap): 50 of 60 questions (83%)") == 1
    assert text.count("## Question classes") == 1
    assert "| knowledge-update | 0 | 0 | 0 | 0 | 10 | 0 | 10 |" in text
    bare = [arm for arm in arms if arm.classes.is_empty()]
    assert 'id="classes"' not in page(report.comparison, bare)
    assert "Question classes" not in document(report.comparison, bare)


def test_a_hostile_type_stays_text(runs: Path, report) -> None:
    gap = next(a for a in classed(runs, gap=SIX) if a.name == "gap")
    odd = gap.questions.with_columns(category=pl.lit("</td><script>x|y"))
    odd.write_parquet(gap.folder / "questions.parquet")
    seal(gap.folder)
    (again,) = [a for a in finished_arms(runs).arms if a.name == "gap"]
    (one,) = class_tables([again])
    assert one.rows[0][-2] == "–"  # a type that no class stands for
    assert one.caption.endswith("no type here has a class")
    assert "<script>x" not in page(report.comparison, [again])
    assert "| &lt;/td&gt;&lt;script&gt;x\\|y |" in document(report.comparison, [again])


def test_types_counts_scored_questions_only(arms: tuple[ArmRun, ...]) -> None:
    table = arms[0].questions
    assert sum(size for _, size in types(arms)) == table["scored"].sum() < table.height
    kinds = [name for name, _ in types(arms)]
    expected = table.filter("scored").group_by("category").agg(pl.col("session/recall_all@5").mean())
    by_kind = dict(zip(expected["category"], expected["session/recall_all@5"]))
    assert by_type(arms, "session/recall_all@5", kinds)[0] == pytest.approx([by_kind[k] for k in kinds])


def test_a_table_by_type_is_tinted_from_low_to_high_and_left_out_where_all_arms_agree(arms: tuple[ArmRun, ...]) -> None:
    (table,) = type_tables(arms, ["selected/session/recall_all", "session/recall_all@5"])
    assert table.metric == "selected/session/recall_all"
    tints = [tint for _, cells in table.rows for _, tint in cells]
    assert max(tint for tint in tints if tint is not None) == 100
    value = arms[0].metrics[f"type={table.types[0][0]}/{table.metric}"]
    assert table.rows[0][1][0][0] == f"{100 * value:.1f} %"
