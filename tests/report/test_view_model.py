from __future__ import annotations

import copy
import io
import json

import pytest
from rich.console import Console

from memlab.evaluate.contrast import OUTPUTS
from memlab.harness.results import ArmRun
from memlab.report import units, view_model
from memlab.report.build import ReportFiles
from memlab.report.console import print_comparison
from memlab.report.opening import opening


def test_the_contrasts_metrics_come_first_and_amounts_have_their_own_columns(report: ReportFiles) -> None:
    columns = view_model.metric_columns(report.comparison)
    assert columns[0] == "selected/session/recall_all"
    assert len(columns) <= view_model.COLUMNS
    assert not set(columns) & set(view_model.APART)


def test_an_arms_row_holds_the_means_of_its_questions(report: ReportFiles, arms: tuple[ArmRun, ...]) -> None:
    rows = {row.name: row for row in view_model.arm_rows(report.comparison, opening(report.comparison))}
    columns = view_model.metric_columns(report.comparison, opening(report.comparison).metric)
    for arm in arms:
        for metric, cell in zip(columns, rows[arm.name].cells):
            assert cell.value == pytest.approx(arm.questions[metric].drop_nulls().mean())
            assert cell.text == (f"{100 * cell.value:.1f} %" if "recall" in metric else f"{cell.value:.3f}")


def test_a_declared_difference_is_marked_solid_an_exploratory_one_hollow(report: ReportFiles) -> None:
    metric = "selected/session/recall_all"
    assert [sign for sign, _ in view_model.marks(report.comparison, "gap", metric)] == ["▼"]
    assert view_model.marks(report.comparison, "fixed_5", metric) == ()  # the verdict's metric: it says what is shown
    other = {**report.comparison, "metric": "session/ndcg@10"}
    assert [sign for sign, _ in view_model.marks(other, "fixed_5", metric)] == ["▽"]
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
    assert [row.badges for row in view_model.arm_rows(comparison, opening(comparison)) if row.name == "gap"] == [
        ("changed nothing against fixed_10",)]
    assert view_model.notes(comparison)[-1] == "Same ranking, different selection and context: by_type and fixed_5."


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


def test_the_best_is_first_the_winner_marked_and_what_all_arms_share_a_sentence(report: ReportFiles) -> None:
    found = opening(report.comparison)
    table = view_model.arms_table(report.comparison, found)
    assert found.metric is not None
    assert table.heads[0][0] == found.metric
    systems = [row for row in table.rows if row.role != "gold"]
    assert [row.role for row in table.rows[len(systems):]] == ["gold"]
    values = [row.cells[0].value for row in systems if row.name != found.winner]
    assert values == sorted(values, reverse=True)
    assert [row.name for row in table.rows if row.role == "winner"] == [found.winner] == [table.rows[0].name]
    assert [row.name for row in table.rows if row.role == "comparator"] == [found.comparator]
    for name in ("session/recall_all@5", "session/recall_any@1"):  # one ranking for all arms
        assert name not in [head for head, _ in table.heads]
        assert units.label(name) in table.same
    assert all(len(row.cells) == len(table.heads) for row in table.rows)


def test_a_line_lies_above_the_first_arm_that_is_shown_to_be_behind(report: ReportFiles) -> None:
    verdict = report.comparison["verdict"]
    assert verdict is not None
    tiers = {place["arm"]: place["tier"] for place in verdict["ranking"]}
    rows = view_model.arms_table(report.comparison, opening(report.comparison)).rows
    apart = [i for i, row in enumerate(rows) if row.apart]
    assert len(apart) == (max(tiers.values()) > 1)
    assert all((tiers[row.name] > 1) == (i >= apart[0]) for i, row in enumerate(rows) if row.name in tiers and apart)


def test_a_twin_that_changed_nothing_is_a_note_and_no_alarm(report: ReportFiles) -> None:
    comparison = copy.deepcopy(report.comparison)
    comparison["noop"] = [{"arm": "gap", "comparator": "gap.twin", "identical": list(OUTPUTS)}]
    assert [heading for heading, _ in view_model.notices(comparison)] == ["Not here"]
    assert view_model.notes(comparison)[-1] == "Same ranking, selection and context: gap and gap.twin."


def test_a_difference_has_one_unit(report: ReportFiles) -> None:
    for row in view_model.contrast_rows(report.comparison):
        facts = dict(row.facts)
        assert facts["difference"] == f"{100 * row.result['difference']:+.1f} points".replace("-", "−")
        assert facts["power"].endswith("for 3.0 points")
