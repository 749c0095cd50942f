from __future__ import annotations

from dataclasses import replace

import pytest

from memlab.harness.results import ArmRun
from memlab.report import figures, view_model
from memlab.report.build import ReportFiles


def every(report: ReportFiles, arms: tuple[ArmRun, ...]) -> list[figures.Figure]:
    columns = view_model.metric_columns(report.comparison)
    made = [*figures.heat_map(arms, columns).values(),
            *figures.recall_against_tokens(report.comparison, columns).values(),
            figures.wins_and_losses(report.comparison["contrasts"]), figures.reliability(arms)]
    assert None not in made
    return made  # type: ignore[return-value]


def test_plotly_accepts_every_figure(report: ReportFiles, arms: tuple[ArmRun, ...]) -> None:
    go = pytest.importorskip("plotly.graph_objects")
    made = every(report, arms)
    assert len(made) >= 4
    for figure in made:
        go.Figure(figure)  # raises on any unknown property or value


def test_bars_are_the_wins_and_losses(report: ReportFiles) -> None:
    contrasts = report.comparison["contrasts"]
    figure = figures.wins_and_losses(contrasts)
    assert figure is not None
    losses, wins = figure["data"]
    assert wins["x"] == [c["wins"] for c in contrasts]
    assert losses["x"] == [-c["losses"] for c in contrasts]


def test_points_are_the_arms_and_the_line_is_the_constant_k_curve(report: ReportFiles) -> None:
    metric = "selected/session/recall_all"
    figure = figures.recall_against_tokens(report.comparison, [metric])[metric]
    curve, *points = figure["data"]
    assert curve["customdata"] == list(range(1, 31))
    arm = report.comparison["arms"]["fixed_10"]
    fixed = next(p for p in points if p["name"] == "fixed_10")
    assert (fixed["x"], fixed["y"]) == ([arm["tokens_mean"]], [arm["metrics"][metric]["value"]])
    assert fixed["y"][0] == pytest.approx(curve["y"][9])  # the arm of K = 10 lies on the curve at K = 10
    assert [p["name"] for p in points if p["marker"]["symbol"] == "diamond-open"] == ["oracle (looks at gold)"]


def test_twenty_arms_and_their_twins_all_look_different() -> None:
    names = [f"{i}{end}" for i in range(20) for end in ("", ".twin")]
    looks = figures.styles(names)
    assert len(set(looks.values())) == len(names)
    assert figures.styles(["alone.twin"])["alone.twin"][1] == "circle-open"


def test_what_is_not_there_makes_no_chart(arms: tuple[ArmRun, ...]) -> None:
    assert figures.wins_and_losses([]) is None
    assert figures.reliability([a for a in arms if a.name != "calibrated"]) is None
    assert figures.heat_map(arms, ["turn/ndcg@10"]) == {}
    assert figures.recall_against_tokens({"arms": {}, "constant_k": {}, "rule_curves": {}}, ["x"]) == {}


def test_the_settings_of_a_rule_are_a_line_of_its_arms_colour(report: ReportFiles) -> None:
    metric = "selected/session/recall_all"
    points = [{"tokens": 10.0, "value": .2}, {"tokens": 90.0, "value": .8}]
    arm = next(iter(report.comparison["arms"]))
    drawn = figures.recall_against_tokens({**report.comparison, "rule_curves": {arm: {metric: points}}}, [metric])
    line = next(trace for trace in drawn[metric]["data"] if trace["name"] == f"{arm}, all settings")
    assert (line["x"], line["y"]) == ([10, 90], [.2, .8])
    assert line["line"]["color"] == figures.styles(list(report.comparison["arms"]))[arm][0]


def test_a_name_cannot_speak_plotlys_markup() -> None:
    contrast = {"arm": "<b>x</b>", "comparator": "%{y}", "metric": "m", "wins": 1, "losses": 2, "ties": 3}
    figure = figures.wins_and_losses([contrast])
    assert figure is not None
    assert "<b>" not in figure["data"][0]["y"][0]
    assert "%{" not in figure["data"][0]["y"][0]


def test_a_reliability_curve_states_its_calibration_error(arms: tuple[ArmRun, ...]) -> None:
    (arm,) = (a for a in arms if a.name == "calibrated")
    bins = [{"estimated": .2, "observed": .3, "n": 30}, {"estimated": .9, "observed": .8, "n": 10}, {"n": 5}]
    drawn = figures.reliability([replace(arm, manifest={**arm.manifest, "reliability": bins})])
    _, line = drawn["data"]
    assert line["name"] == "calibrated (error 0.100)"
    assert (line["x"], line["y"]) == ([.2, .9], [.3, .8])
