from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from memlab.harness.results import ArmRun
from memlab.report import figures
from memlab.report.build import ReportFiles
from memlab.report.opening import Opening, opening

SVG = "{http://www.w3.org/2000/svg}"
METRIC = "selected/session/recall_all"


@pytest.fixture
def found(report: ReportFiles) -> Opening:
    return replace(opening(report.comparison), winner="fixed_10", comparator="gap", metric=METRIC)


def drawn(report: ReportFiles, found: Opening) -> ElementTree.Element:
    chart = figures.evidence_against_tokens(report.comparison, found)
    assert chart is not None
    return ElementTree.fromstring(chart.wide)


def titles(svg: ElementTree.Element) -> list[str]:
    return [title.text or "" for title in svg.iter(f"{SVG}title")]


def labels(svg: ElementTree.Element) -> dict[str, str]:
    """Text of each label -> its style."""
    return {text.text or "": text.get("style", "") for text in svg.iter(f"{SVG}text") if text.get("font-size")}


def test_every_arm_is_a_point_with_its_figures(report: ReportFiles, found: Opening) -> None:
    svg, names = drawn(report, found), titles(drawn(report, found))
    for name, arm in report.comparison["arms"].items():
        value, tokens = arm["metrics"][METRIC]["value"], arm["tokens_mean"]
        words = f"{100 * value:.1f} % at {tokens:,.0f} tokens"
        assert f"{name}{' (looks at gold)' * arm['oracle']}: {words}" in names
    reached = [group.get("aria-label") for group in svg.iter(f"{SVG}g") if group.get("tabindex") == "0"]
    assert len(reached) == len(report.comparison["arms"])
    assert {*reached} <= {*names}
    assert len(list(svg.iter(f"{SVG}circle"))) == 5
    assert len([rect for rect in svg.iter(f"{SVG}rect") if rect.get("transform")]) == 1  # the one that looks at gold


def test_the_winner_and_what_it_was_compared_with_are_coloured_and_named_the_rest_is_grey(
        report: ReportFiles, found: Opening) -> None:
    svg = drawn(report, found)
    named = labels(svg)
    assert "--accent" in named["fixed_10"]
    assert "--other" in named["gap"]
    assert all("--soft" in style for name, style in named.items() if name not in ("fixed_10", "gap"))
    fills = [circle.get("style", "") for circle in svg.iter(f"{SVG}circle")]
    assert sorted(re.search(r"fill:var\(--(\w+)", fill)[1] for fill in fills) == [  # type: ignore[index]
        "accent", "edge", "edge", "edge", "other"]


def test_the_axes_end_where_the_arms_do(report: ReportFiles, found: Opening) -> None:
    ticks = [text.text or "" for text in drawn(report, found).iter(f"{SVG}text") if not text.get("font-size")]
    most = max(arm["tokens_mean"] for arm in report.comparison["arms"].values())
    across = [float(text.replace(",", "")) for text in ticks if re.fullmatch(r"[\d,]+", text)]
    assert across[0] == 0
    assert across[-1] <= most < across[-1] + (across[1] - across[0])
    up = [float(text.removesuffix(" %")) for text in ticks if text.endswith(" %")]
    least = min(arm["metrics"][METRIC]["value"] for arm in report.comparison["arms"].values())
    assert up[0] <= 100 * least
    assert up[-1] <= 100


@pytest.mark.parametrize("count", [17, 100])
def test_labels_never_lie_on_each_other(report: ReportFiles, found: Opening, count: int) -> None:
    arms, pattern = report.comparison["arms"], list(report.comparison["arms"].values())
    more = {f"an arm with a long name {i}": {
        **pattern[i % 5], "tokens_mean": 100.0 + 40 * (i % 23), "metrics": {METRIC: {
            "value": .5 + .4 * ((i * 7) % 11) / 11, "low": None, "high": None, "n": 60}}} for i in range(count)}
    chart = figures.evidence_against_tokens({**report.comparison, "arms": {**arms, **more}}, found)
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


def test_a_name_cannot_speak_markup(report: ReportFiles, found: Opening) -> None:
    evil = "<img src=x onerror=alert(1)>\"'&"
    arms = {**report.comparison["arms"], evil: report.comparison["arms"]["fixed_5"]}
    chart = figures.evidence_against_tokens({**report.comparison, "arms": arms}, replace(found, winner=evil))
    assert chart is not None
    assert "<img" not in chart.wide
    assert any(title.startswith(f"{evil}: ") for title in titles(ElementTree.fromstring(chart.wide)))


def test_the_settings_of_the_winners_rule_are_a_line_of_its_colour(report: ReportFiles, found: Opening) -> None:
    curve = [{"tokens": 10.0, "value": .2}, {"tokens": 900.0, "value": .8}]
    comparison = {**report.comparison, "rule_curves": {name: {METRIC: curve} for name in ("fixed_10", "fixed_5")}}
    chart = figures.evidence_against_tokens(comparison, found)
    assert chart is not None
    lines = {line[0].text: line.get("style", "") for line in ElementTree.fromstring(chart.wide).iter(f"{SVG}polyline")}
    assert "--accent" in lines["fixed_10, all settings"]
    assert "--edge" in lines["fixed_5, all settings"]
    assert "--edge" in lines["constant K"]


def test_the_grey_line_is_constant_k_on_the_ranking_that_all_share_and_nothing_else(
        report: ReportFiles, found: Opening) -> None:
    assert list(figures.constant_k(report.comparison, found)) == [""]
    (points,) = report.comparison["constant_k"].values()
    lines = dict.fromkeys(report.comparison["arms"], points)  # rankings that differ
    chart = figures.evidence_against_tokens({**report.comparison, "constant_k": lines}, found)
    assert chart is not None
    styles = {line[0].text: line.get("style", "") for line in ElementTree.fromstring(chart.wide).iter(f"{SVG}polyline")}
    assert [name for name, style in styles.items() if "--edge" in style] == []
    assert "--accent" in styles["fixed_10, constant K"]
    assert "--other" in styles["gap, constant K"]


def test_what_is_not_there_makes_no_chart(
        report: ReportFiles, arms: tuple[ArmRun, ...], found: Opening) -> None:
    assert figures.reliability([a for a in arms if a.name != "calibrated"], found) is None
    assert figures.evidence_against_tokens(report.comparison, replace(found, metric="no/metric")) is None
    assert figures.evidence_against_tokens(report.comparison, replace(found, metric=None)) is None


def test_a_reliability_curve_states_its_calibration_error(arms: tuple[ArmRun, ...], found: Opening) -> None:
    (arm,) = (a for a in arms if a.name == "calibrated")
    bins = [{"estimated": .2, "observed": .3, "n": 30}, {"estimated": .9, "observed": .8, "n": 10}, {"n": 5}]
    text = figures.reliability([replace(arm, manifest={**arm.manifest, "reliability": bins})], found)
    assert text is not None
    svg = ElementTree.fromstring(text)
    assert "calibrated, error 0.100" in labels(svg)
    assert "calibrated: estimated 0.90, observed 0.80, n = 10" in " ".join(titles(svg))
    assert len(list(svg.iter(f"{SVG}circle"))) == 2
