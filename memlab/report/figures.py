"""The report's charts as plotly figures: plain dictionaries of data and layout, drawn by the page.

Colours are Okabe and Ito's (jfly.uni-koeln.de/color), which colour-blind readers can distinguish; every arm also has
a symbol of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from memlab.evaluate.compare import ArmSummary, Comparison
from memlab.evaluate.contrast import ContrastResult
from memlab.evaluate.curves import CurvePoint, RulePoint
from memlab.evaluate.summary import calibration_error, complete_bins
from memlab.harness.results import ArmRun
from memlab.report.view_model import by_type, gold_badge, types
from memlab.text.display import format_number, one_line

BLUE, VERMILLION, GREY, INK = "#0072B2", "#D55E00", "#9AA0A6", "#24292f"
PALETTE = (BLUE, VERMILLION, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#5B5B5B", "#8C6BB1")
SYMBOLS = ("circle", "square", "triangle-up", "cross", "star", "pentagon", "triangle-down", "hexagon")
HEAT = [[0.0, "#f4f7fa"], [0.5, "#c3d9ec"], [1.0, "#86b6dc"]]
"""Light blues: dark figures on them keep a contrast of at least 6 : 1."""

ON_HEAT = "#1f2328"

SPAN = 0.2
"""Smallest range of a heat map's colours, so that a spread of a point or two does not look large."""

Figure = dict[str, Any]


def layout(height: int, **more: Any) -> Figure:
    """Return the layout that all charts share; further settings are merged into it."""
    axis: Figure = {"gridcolor": "#e9e7e1", "zerolinecolor": "#c9c6bd", "linecolor": "#c9c6bd", "automargin": True}
    merged: Figure = {
        "height": height, "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", "size": 13, "color": INK},
        "margin": {"l": 64, "r": 16, "t": 16, "b": 52}, "hoverlabel": {"align": "left"},
        "xaxis": dict(axis), "yaxis": dict(axis),
    }
    for name, value in more.items():
        merged[name] = {**merged[name], **value} if isinstance(merged.get(name), dict) else value
    return merged


def _title(text: str) -> Figure:
    return {"text": text, "font": {"size": 12.5, "color": "#57606a"}, "standoff": 14}


def heat_map(arms: Sequence[ArmRun], metrics: Sequence[str]) -> dict[str, Figure]:
    """Return one heat map per metric, arms down and question types across, where there are figures by type."""
    kinds, out = types(arms), {}
    for metric in metrics:
        z = by_type(arms, metric, [name for name, _ in kinds])
        values = [value for row in z for value in row if value is not None]
        if not values:
            continue
        out[metric] = {
            "data": [{
                "type": "heatmap", "z": z, "x": [f"{_wrap(name)}<br>n = {size:,}" for name, size in kinds],
                "zmin": min(min(values), max(values) - SPAN), "zmax": max(values),
                "y": [one_line(arm.name) for arm in arms], "colorscale": HEAT, "xgap": 3, "ygap": 3,
                "text": [[format_number(v) if v is not None else "" for v in row] for row in z],
                "texttemplate": "%{text}", "textfont": {"color": ON_HEAT},
                "hovertemplate": "%{y}<br>%{x}<br><b>%{text}</b><extra></extra>", "hoverongaps": False,
                "colorbar": {"thickness": 10, "outlinewidth": 0, "tickfont": {"size": 11}},
            }],
            "layout": layout(92 + 38 * len(arms), xaxis={"side": "top", "showgrid": False, "tickangle": 0},
                              yaxis={"autorange": "reversed", "showgrid": False},
                              margin={"t": 72, "b": 8, "l": 120}),
        }
    return out


def _wrap(name: str, width: int = 15) -> str:
    """Break a long type name at its hyphens and underscores, with plotly's line breaks.

    >>> _wrap("single-session-preference")
    'single-session-<br>preference'
    """
    lines = [""]
    for part in re.split(r"(?<=[-_ ])", escape_markup(one_line(name))):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "<br>".join(lines)


def recall_against_tokens(comparison: Comparison, metrics: Sequence[str]) -> dict[str, Figure]:
    """Return one chart per metric: constant K and each rule's settings as lines, the arms as points with intervals."""
    out = {}
    curves, looks = comparison["constant_k"], styles(list(comparison["arms"]))
    for metric in dict.fromkeys([*metrics, *curves]):
        line = [p for p in curves.get(metric, []) if p["value"] is not None]
        points = [_point(name, arm, metric, looks[name]) for name, arm in comparison["arms"].items()
                  if arm["tokens_mean"] is not None and metric in arm["metrics"]]
        if not points or not line:
            continue
        curve = {"type": "scatter", "mode": "lines+markers+text", "name": "constant K",
                 "x": [p["tokens"] for p in line], "y": [p["value"] for p in line],
                 "text": _sparse([f"K {p['k']}" for p in line], line),
                 "customdata": [p["k"] for p in line],
                 "textposition": "top left", "textfont": {"size": 10, "color": "#57606a"}, "cliponaxis": False,
                 "line": {"color": GREY, "width": 2}, "marker": {"size": 4, "color": GREY},
                 "hovertemplate": "constant K = %{customdata}<br>%{x:,.0f} tokens<br><b>%{y:.3f}</b><extra></extra>"}
        rules = [_rule_line(name, drawn[metric], looks[name][0]) for name, drawn in comparison["rule_curves"].items()
                 if drawn.get(metric)]
        out[metric] = {"data": [curve, *rules, *points],
                       "layout": layout(460, xaxis={"title": _title("mean context tokens per question"), "rangemode":
                                                     "tozero", "tickformat": ",.0f"},
                                         yaxis={"title": _title(metric), "tickformat": ".2f"},
                                         legend={"font": {"size": 12}, "bgcolor": "rgba(0,0,0,0)"})}
    return out


def _rule_line(name: str, points: Sequence[RulePoint], colour: str) -> Figure:
    return {"type": "scatter", "mode": "lines", "name": f"{one_line(name)}, all settings",
            "x": [p["tokens"] for p in points], "y": [p["value"] for p in points],
            "line": {"color": colour, "width": 1.5, "dash": "dot"},
            "hovertemplate": f"{escape_markup(one_line(name))}<br>%{{x:,.0f}} tokens<br>%{{y:.3f}}<extra></extra>"}


def _sparse(labels: list[str], line: list[CurvePoint]) -> list[str]:
    """Keep only labels that do not overlap: at least 5 % of the width apart."""
    width = max((p["tokens"] for p in line), default=0) or 1
    out, last = [], float("-inf")
    for label, point in zip(labels, line):
        near = point["tokens"] - last < 0.05 * width
        out.append("" if near else label)
        last = last if near else point["tokens"]
    return out


def styles(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return a distinct colour and symbol for each arm; a token-matched baseline has its arm's, hollow.

    >>> styles(["gap", "gap.twin"])
    {'gap': ('#0072B2', 'circle'), 'gap.twin': ('#0072B2', 'circle-open')}
    """
    bases = list(dict.fromkeys(name.removesuffix(".twin") for name in names))
    looks = {base: (PALETTE[i % len(PALETTE)], SYMBOLS[(i + i // len(PALETTE)) % len(SYMBOLS)])
             for i, base in enumerate(bases)}
    for base, (colour, symbol) in list(looks.items()):
        looks.setdefault(f"{base}.twin", (colour, f"{symbol}-open"))
    return {name: looks[name] for name in names}


def _point(name: str, arm: ArmSummary, metric: str, look: tuple[str, str]) -> Figure:
    estimate = arm["metrics"][metric]
    value, low, high = estimate["value"], estimate["low"], estimate["high"]
    label = one_line(f"{name} ({gold_badge(arm)})" if arm["oracle"] else name)
    colour, symbol = (INK, "diamond-open") if arm["oracle"] else look
    point: Figure = {
        "type": "scatter", "mode": "markers", "name": label, "x": [arm["tokens_mean"]], "y": [value],
        "marker": {"size": 12, "color": colour, "line": {"color": colour, "width": 1.5}, "symbol": symbol},
        "hovertemplate": f"<b>{escape_markup(label)}</b><br>%{{x:,.0f}} tokens<br><b>%{{y:.3f}}</b><extra></extra>",
    }
    if low is not None and high is not None:
        point["error_y"] = {"type": "data", "symmetric": False, "array": [max(0.0, high - value)],
                            "arrayminus": [max(0.0, value - low)], "color": colour, "thickness": 1, "width": 3}
    return point


def escape_markup(text: str) -> str:
    """Escape plotly's markup and template fields in a name."""
    return text.replace("<", "‹").replace(">", "›").replace("%{", "% {")


def wins_and_losses(contrasts: Sequence[ContrastResult]) -> Figure | None:
    """Return bars of questions won (right) and lost (left), one pair per contrast; None without any."""
    rows = [c for c in contrasts if c["wins"] is not None]
    if not rows:
        return None
    y = [f"{escape_markup(one_line(c['arm']))} against {escape_markup(one_line(c['comparator']))}<br>"
         f"<span style='color:#57606a;font-size:11px'>{escape_markup(c['metric'])}</span>" for c in rows]
    wins, losses = ([c[key] or 0 for c in rows] for key in ("wins", "losses"))
    top = max(*wins, *losses) or 1
    bars = []
    for name, counts, colour, sign in (("losses", losses, VERMILLION, -1), ("wins", wins, BLUE, 1)):
        bars.append({
            "type": "bar", "orientation": "h", "name": name, "y": y, "x": [sign * n for n in counts],
            "text": [f"{n:,}" for n in counts], "textposition": "outside", "cliponaxis": False,
            "marker": {"color": colour}, "customdata": [[n, c["ties"]] for n, c in zip(counts, rows)],
            "hovertemplate": f"%{{customdata[0]:,}} {name}, %{{customdata[1]:,}} ties<extra></extra>"})
    return {"data": bars,
            "layout": layout(96 + 52 * len(rows), barmode="relative", bargap=0.45, showlegend=True,
                              legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom",
                                      "traceorder": "normal"},
                              xaxis={"range": [-1.18 * top, 1.18 * top], "title": _title("questions"),
                                     "showticklabels": False},
                              yaxis={"autorange": "reversed", "showgrid": False}, margin={"t": 36, "l": 220})}


def reliability(arms: Sequence[ArmRun]) -> Figure | None:
    """Return estimated against observed probability, one line per arm that fitted one; None when no arm did.

    Legends state the expected calibration error. Read from ``reliability`` in the manifest: a list of bins
    {"estimated", "observed", "n"}.
    """
    lines = []
    looks = styles([arm.name for arm in arms])
    for arm in arms:
        bins = complete_bins(arm.manifest["reliability"])
        error = calibration_error(bins)
        if error is not None:
            largest = max((b.get("n") or 1) for b in bins)
            lines.append({
                "type": "scatter", "mode": "lines+markers",
                "name": f"{one_line(arm.name)} (error {format_number(error)})",
                "x": [b["estimated"] for b in bins], "y": [b["observed"] for b in bins],
                "customdata": [b.get("n") for b in bins], "line": {"color": looks[arm.name][0], "width": 2},
                "marker": {"symbol": looks[arm.name][1],
                           "size": [7 + 11 * ((b.get("n") or 1) / largest) ** 0.5 for b in bins]},
                "hovertemplate": "estimated %{x:.2f}<br>observed <b>%{y:.2f}</b><br>n = %{customdata}<extra></extra>"})
    if not lines:
        return None
    diagonal = {"type": "scatter", "mode": "lines", "x": [0, 1], "y": [0, 1], "name": "perfectly calibrated",
                "line": {"color": GREY, "dash": "dash", "width": 1.5}, "hoverinfo": "skip"}
    return {"data": [diagonal, *lines],
            "layout": layout(430, xaxis={"range": [-0.02, 1.02], "tickformat": ".1f",
                                          "title": _title("estimated probability")},
                              yaxis={"range": [-0.02, 1.05], "tickformat": ".1f",
                                     "title": _title("observed share")})}
