from __future__ import annotations

import copy
import json

import pytest

from memlab.evaluate.contrast import OUTPUTS, UNKNOWN
from memlab.report import arms_table, units
from memlab.report.effects import bars
from memlab.report.view_model import ContrastRow, ReportView


def changed(view: ReportView, **changes: object) -> ReportView:
    return ReportView({**copy.deepcopy(view.comparison), **changes}, view.arms)  # type: ignore[typeddict-item]


def test_the_contrasts_metrics_come_first_and_amounts_have_their_own_columns(view: ReportView) -> None:
    assert view.columns[0] == "selected/session/recall_all"
    assert len(view.columns) <= arms_table.COLUMNS
    assert not {*view.columns} & {*arms_table.APART}
    bare = json.loads('{"contrasts": [], "arms": {"a": {"metrics": {"turn/mrr": {}, "type=x/turn/mrr": {}}}}}')
    assert arms_table.metric_columns(bare) == ["turn/mrr"]


def test_an_arms_row_holds_the_means_of_its_questions_and_the_highest_is_bold(view: ReportView) -> None:
    rows = {row.name: row for row in view.rows}
    systems = [arm for arm in view.arms if not arm.oracle]
    for at, metric in enumerate(view.columns):
        means = {arm.name: arm.questions[metric].drop_nulls().mean() for arm in view.arms}
        for name, mean in means.items():
            assert rows[name].cells[at].value == pytest.approx(mean)
            assert rows[name].cells[at].text == (f"{100 * mean:.1f} %" if "recall" in metric else f"{mean:.3f}")
        values = {arm.name: means[arm.name] for arm in systems}
        top = {name for name, value in values.items() if value == max(values.values())}
        assert {name for name, row in rows.items() if row.cells[at].best} == (
            top if len({*values.values()}) > 1 else set())


def test_a_declared_difference_is_marked_solid_an_exploratory_one_hollow(view: ReportView) -> None:
    metric = "selected/session/recall_all"
    assert [sign for sign, _ in arms_table.marks(view.comparison, "gap", metric)] == ["▼"]
    assert arms_table.marks(view.comparison, "fixed_5", metric) == ()  # the verdict's metric: it says what is shown
    other = changed(view, metric="session/ndcg@10").comparison
    assert [sign for sign, _ in arms_table.marks(other, "fixed_5", metric)] == ["▽"]
    other["contrasts"][0] |= {"p": 0.03, "p_adjusted": 0.06}
    assert arms_table.marks(other, "gap", metric) == ()


@pytest.mark.parametrize(("other", "same", "alarm"), [
    ("fixed_10", list(OUTPUTS), True), ("fixed_5", ["ranking"], False), ("gap.twin", list(OUTPUTS), False)])
def test_the_same_outputs_read_changed_nothing_but_of_a_twin(
        view: ReportView, other: str, same: list[str], alarm: bool) -> None:
    one = changed(view, noop=[{"arm": "gap", "comparator": other, "identical": same}])
    assert [heading for heading, _ in one.notices] == ["Changed nothing"] * alarm + ["Not here"]
    badges = next(row.badges for row in one.rows if row.name == "gap")
    assert badges == ("changed nothing against fixed_10",) * alarm


def test_the_best_is_first_the_winner_marked_and_what_all_arms_share_a_sentence(view: ReportView) -> None:
    table, found = view.table, view.opening
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


def test_a_line_lies_above_the_first_arm_that_is_shown_to_be_behind(view: ReportView) -> None:
    verdict = view.comparison["verdict"]
    assert verdict is not None
    tiers = {place["arm"]: place["tier"] for place in verdict["ranking"]}
    apart = [i for i, row in enumerate(view.rows) if row.apart]
    assert len(apart) == (max(tiers.values()) > 1)
    assert all((tiers[row.name] > 1) == (i >= apart[0]) for i, row in enumerate(view.rows)
               if row.name in tiers and apart)


def test_a_difference_has_one_unit(view: ReportView) -> None:
    for row in view.declared:
        facts = dict(row.facts)
        assert facts["difference"] == f"{100 * row.result['difference']:+.1f} points".replace("-", "−")
        assert facts["power"].endswith("for 3.0 points")


def test_intervals_lie_on_one_scale_with_zero_and_amounts_on_their_own() -> None:
    rate = {**UNKNOWN, "metric": "session/mrr", "difference": 0.1, "low": 0.0, "high": 0.2}
    tokens = {**UNKNOWN, "metric": "context/tokens", "difference": -500.0, "low": -800.0, "high": -200.0}
    none = {**UNKNOWN, "metric": "session/mrr"}
    one, two, three = bars([ContrastRow("", "open", (), row) for row in (rate, tokens, none)])  # type: ignore[arg-type]
    assert one is not None
    assert two is not None
    assert three is None
    assert one.low == one.zero < one.at < one.high
    assert one.at == pytest.approx((one.low + one.high) / 2)
    assert 0 < two.low < two.at < two.high < two.zero <= 100
