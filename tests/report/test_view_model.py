from __future__ import annotations

import copy
import io
import json

import polars as pl
import pytest
from rich.console import Console

from memlab.evaluate.contrast import OUTPUTS
from memlab.harness.results import ArmRun
from memlab.report import view_model
from memlab.report.build import ReportFiles
from memlab.report.console import print_comparison


def test_the_contrasts_metrics_come_first_and_amounts_have_their_own_columns(report: ReportFiles) -> None:
    columns = view_model.metric_columns(report.comparison)
    assert columns[0] == "selected/session/recall_all"
    assert len(columns) <= view_model.COLUMNS
    assert not set(columns) & set(view_model.APART)


def test_an_arms_row_holds_the_means_of_its_questions(report: ReportFiles, arms: tuple[ArmRun, ...]) -> None:
    rows = {row.name: row for row in view_model.arm_rows(report.comparison)}
    for arm in arms:
        for metric, cell in zip(view_model.metric_columns(report.comparison), rows[arm.name].cells):
            assert cell.value == pytest.approx(arm.questions[metric].drop_nulls().mean())
            assert cell.text == f"{cell.value:.3f}"


def test_a_declared_difference_is_marked_solid_an_exploratory_one_hollow(report: ReportFiles) -> None:
    metric = "selected/session/recall_all"
    assert [sign for sign, _ in view_model.marks(report.comparison, "gap", metric)] == ["▼"]
    assert [sign for sign, _ in view_model.marks(report.comparison, "fixed_5", metric)] == ["▽"]
    assert view_model.marks(report.comparison, "gap", "session/recall_any@5") == ()


def test_an_unadjusted_p_alone_marks_nothing_declared(report: ReportFiles) -> None:
    comparison = copy.deepcopy(report.comparison)
    comparison["contrasts"][0] |= {"p": 0.03, "p_adjusted": 0.06}
    assert view_model.tone(comparison["contrasts"][0]) == "open"
    assert view_model.marks(comparison, "gap", "selected/session/recall_all") == ()


def test_the_same_outputs_everywhere_read_changed_nothing_and_never_no_effect(report: ReportFiles) -> None:
    comparison = copy.deepcopy(report.comparison)
    comparison["noop"] = [{"arm": "gap", "comparator": "fixed_10", "identical": list(OUTPUTS)},
                          {"arm": "by_type", "comparator": "fixed_5", "identical": ["ranking"]}]
    headings = [heading for heading, _ in view_model.notices(comparison)]
    assert headings == ["Changed nothing", "Not here"]
    assert [row.badges for row in view_model.arm_rows(comparison) if row.name == "gap"] == [
        ("changed nothing against fixed_10",)]
    assert view_model.notes(comparison)[-1] == "Same ranking, different selection and context: by_type and fixed_5."


def test_types_counts_scored_questions_only(arms: tuple[ArmRun, ...]) -> None:
    table = arms[0].questions
    assert sum(size for _, size in view_model.types(arms)) == table["scored"].sum() < table.height
    kinds = [name for name, _ in view_model.types(arms)]
    expected = table.filter("scored").group_by("category").agg(pl.col("session/recall_all@5").mean())
    by_kind = dict(zip(expected["category"], expected["session/recall_all@5"]))
    assert view_model.by_type(arms, "session/recall_all@5", kinds)[0] == pytest.approx([by_kind[k] for k in kinds])


def test_without_contrasts_metrics_are_still_shown() -> None:
    comparison = json.loads('{"contrasts": [], "arms": {"a": {"metrics": {"turn/mrr": {}, "type=x/turn/mrr": {}}}}}')
    assert view_model.metric_columns(comparison) == ["turn/mrr"]


def test_every_arm_is_named_once_with_all_that_it_is_compared_with() -> None:
    def rows(*pairs: tuple[str, str]) -> list[dict[str, str]]:
        return [{"arm": arm, "comparator": other} for arm, other in pairs]

    declared = rows(("best", "plain"), ("best", "gimli"))
    assert view_model.compared_arms({"contrasts": declared, "exploratory": rows(
        ("best", "plain"), ("gimli", "plain"))}) == "best with plain and gimli, gimli with plain"
    assert view_model.compared_arms({"contrasts": [], "exploratory": rows(
        ("a", "x"), ("b", "x"), ("c", "x"))}) == "all with x"
    assert view_model.compared_arms({"contrasts": [], "exploratory": []}) == ""


def test_page_document_and_terminal_say_what_is_compared(report: ReportFiles) -> None:
    told = view_model.compared_arms(report.comparison)
    assert told
    assert told in report.html.read_text()
    assert told.replace("_", "\\_") in report.markdown.read_text() or told in report.markdown.read_text()
    out = io.StringIO()
    print_comparison(report.comparison, Console(file=out, width=400))
    assert told in out.getvalue()
