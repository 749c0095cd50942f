from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from memlab.report import figures
from memlab.report.view_model import ReportView

SVG = "{http://www.w3.org/2000/svg}"
METRIC = "selected/session/recall_all"


@pytest.fixture
def shown(view: ReportView) -> ReportView:
    """The report with fixed_10 as the winner, compared with gap."""
    return changed(view)


def changed(view: ReportView, winner: str = "fixed_10", metric: str | None = METRIC, **comparison: Any) -> ReportView:
    other = ReportView({**view.comparison, **comparison}, view.arms)  # type: ignore[typeddict-item]
    other.__dict__["opening"] = replace(view.opening, winner=winner, comparator="gap", metric=metric)
    return other


def drawn(view: ReportView) -> ElementTree.Element:
    chart = figures.evidence_against_tokens(view)
    assert chart is not None
    return ElementTree.fromstring(chart.wide)


def titles(svg: ElementTree.Element) -> list[str]:
    return [title.text or "" for title in svg.iter(f"{SVG}title")]


def labels(svg: ElementTree.Element) -> dict[str, str]:
    """Text of each label -> its style."""
    return {text.text or "": text.get("style", "") for text in svg.iter(f"{SVG}text") if text.get("font-size")}


def test_every_arm_is_a_point_with_its_figures(shown: ReportView) -> None:
    svg, names = drawn(shown), titles(drawn(shown))
    for name, arm in shown.comparison["arms"].items():
        value, tokens = arm["metrics"][METRIC]["value"], arm["tokens_mean"]
        words = f"{100 * value:.1f} % at {tokens:,.0f} tokens"
        assert f"{name}{' (looks at gold)' * arm['oracle']}: {words}" in names
    reached = [group.get("aria-label") for group in svg.iter(f"{SVG}g") if group.get("tabindex") == "0"]
    assert len(reached) == len(shown.comparison["arms"])
    assert {*reached} <= {*names}
    assert len(list(svg.iter(f"{SVG}circle"))) == 5
    assert len([rect for rect in svg.iter(f"{SVG}rect") if rect.get("transform")]) == 1  # the one that looks at gold


def test_the_winner_and_what_it_was_compared_with_are_coloured_and_named_the_rest_is_grey(
        shown: ReportView) -> None:
    svg = drawn(shown)
    named = labels(svg)
    assert "--accent" in named["fixed_10"]
    assert "--other" in named["gap"]
    assert all("--soft" in style for name, style in named.items() if name not in ("fixed_10", "gap"))
    fills = [circle.get("style", "") for circle in svg.iter(f"{SVG}circle")]
    assert sorted(re.search(r"fill:var\(--(\w+)", fill)[1] for fill in fills) == [  # type: ignore[index]
        "accent", "edge", "edge", "edge", "other"]


@pytest.mark.parametrize("count", [17, 100])
def test_labels_never_lie_on_each_other(view: ReportView, count: int) -> None:
    pattern = list(view.comparison["arms"].values())
    more = {f"an arm with a long name {i}": {
        **pattern[i % 5], "tokens_mean": 100.0 + 40 * (i % 23), "metrics": {METRIC: {
            "value": .5 + .4 * ((i * 7) % 11) / 11, "low": None, "high": None, "n": 60}}} for i in range(count)}
    chart = figures.evidence_against_tokens(changed(view, arms={**view.comparison["arms"], **more}))
    assert chart is not None
    for text in (chart.wide, chart.narrow):
        boxes = []
        for label in ElementTree.fromstring(text).iter(f"{SVG}text"):
            if size := float(label.get("font-size", 0)):
                wide, x, y = .56 * size * len(label.text or ""), float(label.get("x", 0)), float(label.get("y", 0))
                start = x - {"start": 0, "middle": wide / 2, "end": wide}[label.get("text-anchor", "start")]
                boxes.append((start, y - size, start + wide, y + .2 * size))
        assert len(boxes) >= 3
        for i, (left, top, right, bottom) in enumerate(boxes):
            assert not [b for b in boxes[:i] if left < b[2] and b[0] < right and top < b[3] and b[1] < bottom]


def test_a_name_cannot_speak_markup(view: ReportView) -> None:
    evil = "<img src=x onerror=alert(1)>\"'&"
    arms = {**view.comparison["arms"], evil: view.comparison["arms"]["fixed_5"]}
    svg = drawn(changed(view, winner=evil, arms=arms))
    assert not list(svg.iter(f"{SVG}img"))
    assert any(title.startswith(f"{evil}: ") for title in titles(svg))


def lines_of(view: ReportView) -> dict[str, str]:
    """Title of each line -> its style."""
    return {line[0].text or "": line.get("style", "") for line in drawn(view).iter(f"{SVG}polyline")}


def test_lines_of_rules_and_of_constant_k_have_the_colour_of_their_arms(view: ReportView, shown: ReportView) -> None:
    curve = [{"tokens": 10.0, "value": .2}, {"tokens": 900.0, "value": .8}]
    lines = lines_of(changed(view, rule_curves={name: {METRIC: curve} for name in ("fixed_10", "fixed_5")}))
    assert "--accent" in lines["fixed_10, all settings"]
    assert "--edge" in lines["fixed_5, all settings"]
    assert "--edge" in lines["constant K"]  # of the one ranking that all arms share
    assert list(figures.constant_k(shown)) == [""]
    (points,) = view.comparison["constant_k"].values()
    lines = lines_of(changed(view, constant_k=dict.fromkeys(view.comparison["arms"], points)))  # rankings that differ
    assert [name for name, style in lines.items() if "--edge" in style] == []
    assert "--accent" in lines["fixed_10, constant K"]
    assert "--other" in lines["gap, constant K"]


def test_missing_data_make_no_chart(view: ReportView) -> None:
    assert figures.reliability(ReportView(view.comparison, [a for a in view.arms if a.name != "calibrated"])) is None
    for metric in ("no/metric", None):
        assert figures.evidence_against_tokens(changed(view, metric=metric)) is None


def test_a_reliability_curve_states_its_calibration_error(view: ReportView) -> None:
    (arm,) = (a for a in view.arms if a.name == "calibrated")
    bins = [{"estimated": .2, "observed": .3, "n": 30}, {"estimated": .9, "observed": .8, "n": 10}, {"n": 5}]
    other = replace(arm, manifest={**arm.manifest, "reliability": bins})
    text = figures.reliability(ReportView(view.comparison, [other]))
    assert text is not None
    svg = ElementTree.fromstring(text)
    assert "calibrated, error 0.100" in labels(svg)
    assert "calibrated: estimated 0.90, observed 0.80, n = 10" in " ".join(titles(svg))
    assert len(list(svg.iter(f"{SVG}circle"))) == 2
