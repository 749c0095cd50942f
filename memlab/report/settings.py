"""Settings in which arms differ, and the same as parallel coordinates with what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memlab.harness.results import ArmRun
from memlab.report import view_model
from memlab.report.figures import GREY, INK, Figure, _hover, layout, styles
from memlab.text.display import EMPTY, format_count, format_number, is_number, one_line

ELSEWHERE = ("contrasts", "track", "name", "ablate", "out", "store")
"""Parts of a configuration that say nothing of the arm itself."""

GIVEN = ("embedder", "cross_encoder", "chat", "judge_chat", "learn")
"""Parts that count only where a stage takes them, and are repeated there."""

TECHNIQUE = "._target_"
"""What ends the name of a setting that is a slot's technique, its value being a class."""

AXES, RESULTS = 7, 3
"""Settings and metrics that parallel coordinates have room for."""

NUMBERS, WORDS = 6, 12
"""Values that an axis has labels for; of more, the ends are labelled."""


def differing(arms: Sequence[ArmRun]) -> dict[str, dict[str, str]]:
    """Return setting -> arm -> value for the settings that are not the same in all arms, in the order of config.yaml.

    What an arm does not have is ``EMPTY``.
    """
    by_arm = {arm.name: view_model.flat({k: v for k, v in arm.settings.items() if k not in ELSEWHERE + GIVEN})
              for arm in arms}
    names = list(dict.fromkeys(name for table in by_arm.values() for name in table))
    found = {name: {arm: table.get(name, EMPTY) for arm, table in by_arm.items()} for name in names}
    return {name: row for name, row in found.items() if len(set(row.values())) > 1}


def by_value(arms: Sequence[ArmRun]) -> dict[str, dict[str, list[str]]]:
    """Return setting -> value -> the arms that have it, for reading: a technique is named by its class alone."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, row in differing(arms).items():
        values: dict[str, list[str]] = found.setdefault(name.removesuffix(TECHNIQUE), {})
        for arm, value in row.items():
            if value != EMPTY:
                values.setdefault(_class(value) if name.endswith(TECHNIQUE) else value, []).append(arm)
        if EMPTY in row.values():
            values[EMPTY] = ["all others"]
    return found


def _class(path: str) -> str:
    """Name a class as people do.

    >>> _class("memlab.rank.select.Fixed"), _class("memlab.stage.Nothing")
    ('Fixed', 'none')
    """
    name = path.rpartition(".")[2]
    return "none" if name == "Nothing" else name


def axes(arms: Sequence[ArmRun]) -> list[str]:
    """Choose the settings for parallel coordinates: those with several values, that most arms have one for.

    Those that all arms have come first, and numbers before names.
    """
    found = differing(arms)
    there = {name: [v for v in row.values() if v != EMPTY] for name, row in found.items()}
    kept = [name for name, values in there.items() if 2 * len(values) > len(arms) and len(set(values)) > 1]
    return sorted(kept, key=lambda name: (-len(there[name]), not _numbers(there[name])))[:AXES]


def parallel(comparison: dict[str, Any], arms: Sequence[ArmRun]) -> Figure | None:
    """A line an arm over its settings, mean K, tokens and the first metrics that differ; None where no setting does.

    Drawn as plain lines: plotly's own parallel coordinates need WebGL and a page that may evaluate code.
    """
    rows = differing(arms)
    columns = {name.removesuffix(TECHNIQUE): list(rows[name].values()) for name in axes(arms)}
    if not columns:
        return None
    told = [comparison["arms"].get(arm.name, {}) for arm in arms]
    if any(is_number(one.get("selected_k_mean")) for one in told):
        columns["K"] = [format_number(one.get("selected_k_mean"), 1) for one in told]
    columns["tokens"] = [format_count(one.get("tokens_mean")).replace(",", "") for one in told]
    results = {metric: [format_number((one.get("metrics", {}).get(metric) or {}).get("value")) for one in told]
               for metric in view_model.metric_columns(comparison)}
    columns |= dict([(metric, values) for metric, values in results.items() if len(set(values)) > 1][:RESULTS])
    labels = [_label(name) for name in columns]
    heights = [_heights(values) for values in columns.values()]
    looks = styles([arm.name for arm in arms]) | {arm.name: (INK, "diamond-open") for arm in arms if arm.oracle}
    lines = [{
        "type": "scatter", "mode": "lines+markers", "x": labels,
        "name": one_line(arm.name) + " (looks at gold)" * arm.oracle,
        "y": [at.get(values[i]) for at, values in zip(heights, columns.values())],
        "text": [_hover(one_line(values[i])) for values in columns.values()], "connectgaps": True,
        "line": {"color": looks[arm.name][0], "width": 2}, "marker": {"symbol": looks[arm.name][1], "size": 8},
        "hovertemplate": f"<b>{_hover(one_line(arm.name))}</b><br>%{{x}}<br>%{{text}}<extra></extra>"}
        for i, arm in enumerate(arms)]
    notes = [{"x": label, "y": y, "text": _hover(one_line(value).rpartition(".")[2] if _number(value) is None
                                                 else value)[:24],
              "showarrow": False, "xanchor": "left", "xshift": 7, "bgcolor": "rgba(255,255,255,0.7)",
              "font": {"size": 10, "color": "#57606a"}}
             for label, at in zip(labels, heights) for value, y in _named(at).items()]
    bars = [{"type": "line", "x0": label, "x1": label, "y0": 0, "y1": 1, "line": {"color": GREY, "width": 1}}
            for label in labels]
    return {"data": lines, "layout": layout(
        460, annotations=notes, shapes=bars, margin={"r": 90}, hovermode="closest",
        xaxis={"type": "category", "showgrid": False}, yaxis={"visible": False, "range": [-0.06, 1.06]})}


def _label(name: str) -> str:
    """Break a name at its dots and slashes, so that axes find room beside each other.

    >>> _label("rank.select.k")
    'rank.<br>select.<br>k'
    """
    return _hover(one_line(name)).replace(".", ".<br>").replace("/", "/<br>")


def _heights(values: Sequence[str]) -> dict[str, float]:
    """Where values lie on an axis of height 1: numbers to scale, words evenly; what is not there has no place.

    >>> _heights(["5", "10", "20"])
    {'5': 0.0, '10': 0.3333333333333333, '20': 1.0}
    >>> _heights(["gap", "budget", "–"])
    {'gap': 0.0, 'budget': 1.0}
    """
    there = list(dict.fromkeys(v for v in values if v != EMPTY))
    numbers = [_number(v) for v in there] if _numbers(there) else list(map(float, range(len(there))))
    scale = [n for n in numbers if n is not None]
    low, high = min(scale, default=0.0), max(scale, default=0.0)
    return {v: (n - low) / (high - low) if high > low else 0.5 for v, n in zip(there, scale)}


def _named(at: dict[str, float]) -> dict[str, float]:
    """Label every value where there are few, else the lowest and the highest."""
    if len(at) <= (NUMBERS if _numbers(list(at)) else WORDS):
        return at
    ends = (min(at, key=at.__getitem__), max(at, key=at.__getitem__))
    return {value: at[value] for value in ends}


def _numbers(values: Sequence[str]) -> bool:
    return all(_number(v) is not None for v in values if v != EMPTY)


def _number(value: str) -> float | None:
    try:
        found = float(value)
    except ValueError:
        return None
    return found if is_number(found) else None
