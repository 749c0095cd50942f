"""Settings in which arms differ, as a table and as parallel coordinates with the results."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from memlab.evaluate.compare import Comparison
from memlab.harness.results import ArmRun
from memlab.report import provenance, view_model
from memlab.report.display_names import with_display_names
from memlab.report.figures import GREY, INK, Figure, escape_markup, layout, styles
from memlab.text.display import EMPTY, format_count, format_number, one_line

ELSEWHERE = ("contrasts", "track", "name", "ablate", "out", "store")
"""Parts of a configuration that do not describe the arm itself."""

SHARED = ("embedder", "cross_encoder", "chat", "judge_chat", "learn")
"""Parts that count only where a stage uses them, and are repeated there."""

TECHNIQUE = "._target_"
"""Suffix of a setting that is a slot's technique; its value is a display name."""

AXES, RESULTS = 7, 3
"""Settings and metrics that fit into parallel coordinates."""

NUMBERS, WORDS = 6, 12
"""Numbers and words up to which an axis labels every value; of more, only the ends are labelled."""


def differing(arms: Sequence[ArmRun]) -> dict[str, dict[str, str]]:
    """Return setting -> arm -> value for the settings that are not the same in all arms, in the order of config.yaml.

    A setting that an arm does not have is ``EMPTY``.
    """
    rows = provenance.transpose({arm.name: provenance.flat(with_display_names({
        k: v for k, v in arm.settings.items() if k not in ELSEWHERE + SHARED})) for arm in arms})
    return {name: row for name, row in rows.items() if len(set(row.values())) > 1}


def by_value(arms: Sequence[ArmRun]) -> dict[str, dict[str, list[str]]]:
    """Return setting -> value -> the arms that have it."""
    settings: dict[str, dict[str, list[str]]] = {}
    for name, row in differing(arms).items():
        values: dict[str, list[str]] = settings.setdefault(name.removesuffix(TECHNIQUE), {})
        for arm, value in row.items():
            if value != EMPTY:
                values.setdefault(value, []).append(arm)
        if EMPTY in row.values():
            values[EMPTY] = ["all others"]
    return settings


def axes(arms: Sequence[ArmRun]) -> list[str]:
    """Choose the settings for parallel coordinates: those with several values that most arms have.

    Settings that all arms have come first, and numbers before words.
    """
    values = {name: [v for v in row.values() if v != EMPTY] for name, row in differing(arms).items()}
    kept = [name for name, row in values.items() if 2 * len(row) > len(arms) and len(set(row)) > 1]
    return sorted(kept, key=lambda name: (-len(values[name]), not _numeric(values[name])))[:AXES]


def parallel(comparison: Comparison, arms: Sequence[ArmRun]) -> Figure | None:
    """Draw a line per arm over its settings, mean K, tokens and the first metrics that differ; None without any.

    Plain lines, since plotly's own parallel coordinates need WebGL and a page that may evaluate code.
    """
    rows = differing(arms)
    columns = {name.removesuffix(TECHNIQUE): list(rows[name].values()) for name in axes(arms)}
    if not columns:
        return None
    summaries = [comparison["arms"][arm.name] for arm in arms]
    if any(arm["selected_k_mean"] is not None for arm in summaries):
        columns["K"] = [format_number(arm["selected_k_mean"], 1) for arm in summaries]
    columns["tokens"] = [format_count(arm["tokens_mean"]).replace(",", "") for arm in summaries]
    results = {metric: [format_number(arm["metrics"][metric]["value"]) if metric in arm["metrics"] else EMPTY
                        for arm in summaries] for metric in view_model.metric_columns(comparison)}
    columns |= dict([(metric, values) for metric, values in results.items() if len(set(values)) > 1][:RESULTS])
    labels = [_label(name) for name in columns]
    heights = [_heights(values) for values in columns.values()]
    looks = styles([arm.name for arm in arms]) | {arm.name: (INK, "diamond-open") for arm in arms if arm.oracle}
    lines = [{
        "type": "scatter", "mode": "lines+markers", "x": labels,
        "name": one_line(arm.name + (f" ({view_model.gold_badge(summary)})" if arm.oracle else "")),
        "y": [at.get(values[i]) for at, values in zip(heights, columns.values())],
        "text": [escape_markup(one_line(values[i])) for values in columns.values()], "connectgaps": True,
        "line": {"color": looks[arm.name][0], "width": 2}, "marker": {"symbol": looks[arm.name][1], "size": 8},
        "hovertemplate": f"<b>{escape_markup(one_line(arm.name))}</b><br>%{{x}}<br>%{{text}}<extra></extra>"}
        for i, (arm, summary) in enumerate(zip(arms, summaries))]
    notes = [{"x": label, "y": y, "showarrow": False,
              "text": escape_markup(value if _numeric([value]) else one_line(value))[:24],
              "xanchor": "left", "xshift": 7, "bgcolor": "rgba(255,255,255,0.7)",
              "font": {"size": 10, "color": "#57606a"}}
             for label, at in zip(labels, heights) for value, y in _labelled(at).items()]
    bars = [{"type": "line", "x0": label, "x1": label, "y0": 0, "y1": 1, "line": {"color": GREY, "width": 1}}
            for label in labels]
    return {"data": lines, "layout": layout(
        460, annotations=notes, shapes=bars, margin={"r": 90}, hovermode="closest",
        xaxis={"type": "category", "showgrid": False}, yaxis={"visible": False, "range": [-0.06, 1.06]})}


def _label(name: str) -> str:
    """Break a name at its dots and slashes, so that axes fit beside each other.

    >>> _label("rank.select.k")
    'rank.<br>select.<br>k'
    """
    return escape_markup(one_line(name)).replace(".", ".<br>").replace("/", "/<br>")


def _heights(values: Sequence[str]) -> dict[str, float]:
    """Place values on an axis of height 1: numbers to scale, words evenly; ``EMPTY`` has no place.

    >>> _heights(["5", "10", "20"])
    {'5': 0.0, '10': 0.3333333333333333, '20': 1.0}
    >>> _heights(["gap", "budget", "–"])
    {'gap': 0.0, 'budget': 1.0}
    """
    distinct = list(dict.fromkeys(v for v in values if v != EMPTY))
    scale = [float(v) if _numeric(distinct) else i for i, v in enumerate(distinct)]
    low, high = min(scale, default=0.0), max(scale, default=0.0)
    return {v: (n - low) / (high - low) if high > low else 0.5 for v, n in zip(distinct, scale)}


def _labelled(at: dict[str, float]) -> dict[str, float]:
    """Return every value where there are few, else the lowest and the highest."""
    if len(at) <= (NUMBERS if _numeric(list(at)) else WORDS):
        return at
    ends = (min(at, key=at.__getitem__), max(at, key=at.__getitem__))
    return {value: at[value] for value in ends}


def _numeric(values: Sequence[str]) -> bool:
    """Return whether all values but ``EMPTY`` are finite numbers."""
    try:
        return all(isfinite(float(value)) for value in values if value != EMPTY)
    except ValueError:
        return False
