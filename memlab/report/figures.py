"""The report's charts: evidence against context tokens, and the reliability of learned estimates."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial

from memlab.evaluate.curves import CurvePoint
from memlab.evaluate.summary import calibration_error, complete_bins
from memlab.report import units
from memlab.report.opening import Opening
from memlab.report.plot import Axis, Mark, Point, Polyline, around, plot
from memlab.report.view_model import ReportView
from memlab.support.text.display import format_count, format_number, is_number

WIDE, NARROW = (1100, 440), (390, 380)
"""Sizes of a chart on a screen and on a phone, in units of a font of 13."""

FEW = 3
"""Arms up to which a chart also shows the constant-K curve as far as twice the arms' tokens."""


@dataclass(frozen=True)
class Chart:
    """A chart as SVG for a screen and for a phone."""

    wide: str
    narrow: str


def evidence_against_tokens(view: ReportView) -> Chart | None:
    """Draw what arms show against mean context tokens: arms as points, constant K and each rule's settings as lines.

    The winner and what it was compared with are coloured. The line of constant K is that of the one ranking that all
    arms share, in all reports. None without tokens or the metric.
    """
    opening, metric = view.opening, drawn_metric(view.opening)
    marks = _marks(view, metric)
    if not marks:
        return None
    curves = _curves(view, metric)
    points = [(mark.x, mark.y) for mark in marks]
    if len(set(points)) <= FEW:
        reach = 2 * max(x for x, _ in points)
        points += [point for curve in curves for point in curve.points if point[0] <= reach]
    heights = [y for _, y in points] + [end for m in marks if m.role for end in (m.low, m.high) if end is not None]
    least, most = min(points)[0], max(points)[0]
    share = units.is_share(metric)
    start = 0 if least < 0.6 * most else around([least, most], 6, 0, most)[0]
    x = Axis(start, most or 1, "context tokens per question")
    low, high = around(heights, 6, 0, 1 if share else max(heights))
    y = Axis(low, high, units.label(metric), partial(_tick, share=share, span=high - low))
    named = [name for name in (opening.winner, opening.comparator) if name]
    words = f"{units.label(metric)} ({metric}) against context tokens, {len(marks)} arms"
    words += f"; coloured: {' and '.join(named)}" if named else ""
    return Chart(*(plot(f"chart-{name}", size, x, y, curves, marks, words) for name, size in
                   (("wide", WIDE), ("narrow", NARROW))))


def _tick(value: float, share: bool, span: float) -> str:
    return f"{100 * value:.{int(span < 0.05)}f} %" if share else f"{value:.{2 + (span < 0.05)}f}"


def _marks(view: ReportView, metric: str) -> list[Mark]:
    marks = []
    for name, arm in view.comparison["arms"].items():
        estimate, tokens = arm["metrics"].get(metric), arm["tokens_mean"]
        if estimate is None or tokens is None:
            continue
        gold = arm["oracle"] or arm["tainted"]
        words = f"{units.write(metric, estimate['value'])} at {format_count(tokens)} tokens"
        marks.append(Mark(f"{name} (looks at gold)" if arm["oracle"] else name, tokens, estimate["value"],
                          estimate["low"], estimate["high"], words, "" if gold else _role(name, view.opening), gold))
    return [replace(marks[0], role="winner")] if len(marks) == 1 else marks


def _role(name: str, opening: Opening) -> str:
    return "winner" if name == opening.winner else "comparator" if name == opening.comparator else ""


def constant_k(view: ReportView) -> dict[str, list[CurvePoint]]:
    """Return arm -> what its ranking holds at each constant K, in the metric of the picture.

    "" is the one ranking that all arms share. Where rankings differ, they are those of the winner and of the arm that
    it was compared with.
    """
    lines, metric = view.comparison["constant_k"], drawn_metric(view.opening)
    found = dict(zip([""], lines.values())) if len(lines) == 1 else {
        name: lines[name] for name in (view.opening.winner, view.opening.comparator) if name in lines}
    return {name: points[metric] for name, points in found.items() if metric in points}


def drawn_metric(opening: Opening) -> str:
    """Return the metric that the picture draws: what arms show where the verdict cuts their rankings."""
    return re.sub(r"^within_\d+/", "selected/", units.base(opening.metric or ""))


def _curves(view: ReportView, metric: str) -> list[Polyline]:
    opening, curves = view.opening, []
    for name, drawn in constant_k(view).items():
        points = [(p["tokens"], p["value"]) for p in drawn if p["value"] is not None]
        label = f"{name}, constant K" if name else "constant K"
        twin = opening.winner and opening.comparator == f"{opening.winner}.twin"
        role = _role(name, opening) if name else "comparator" if twin else ""
        curves += [Polyline(label, points, role, named=True)] if points else []
    for name, rule in view.comparison["rule_curves"].items():
        line: list[Point] = [(p["tokens"], p["value"]) for p in rule.get(metric, [])]
        if line:
            curves.append(Polyline(f"{name}, all settings", line, _role(name, opening), dashed=True))
    return curves


def reliability(view: ReportView) -> str | None:
    """Draw estimated against observed probability, one line per arm that fitted one; None when no arm did.

    The arms' expected calibration errors are in their names. Read from ``reliability`` in the manifest: a list of bins
    {"estimated", "observed", "n"}.
    """
    lines, marks = [], []
    for arm in view.arms:
        bins = complete_bins(arm.manifest["reliability"])
        error = calibration_error(bins)
        if error is None:
            continue
        points = [(float(b["estimated"]), float(b["observed"])) for b in bins]
        name = f"{arm.name}, error {format_number(error)}"
        lines.append(Polyline(name, points, _role(arm.name, view.opening), named=True))
        marks += [Mark("", x, y, words=f"{arm.name}: estimated {x:.2f}, observed {y:.2f}"
                       + (f", n = {b['n']:,}" if is_number(b.get("n")) else "")) for b, (x, y) in zip(bins, points)]
    if not lines:
        return None
    diagonal = Polyline("perfectly calibrated", [(0.0, 0.0), (1.0, 1.0)], dashed=True)
    return plot("chart-reliability", (560, 400), Axis(0, 1, "estimated probability", "{:.1f}".format),
                Axis(0, 1, "observed share", "{:.1f}".format), [diagonal, *lines], marks,
                "estimated probability against the observed share of " + ", ".join(line.name for line in lines))
