"""The report as one HTML file that needs no network: styles, script, plotly and data travel inside it.

What a benchmark or a model wrote is escaped twice over: by jinja2 where it becomes markup, and by ``_json`` where
it becomes data, which the script then only ever sets as text. A content policy in the page forbids every request.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from memlab.harness.results import ArmRun
from memlab.report import attribution, drill_down, figures, question_types, settings, view_model
from memlab.report.comparators import against
from memlab.text.display import clean, format_count, format_number, is_number, one_line


@dataclass(frozen=True)
class Extras:
    """What the page says beside the comparison: folders not used, and what is said by hand."""

    older: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


@dataclass(frozen=True)
class Forest:
    """Where a contrast's interval lies in a strip 0 to 100 wide with zero at 50; lengths in the same unit."""

    at: float
    low: float
    high: float
    band: float
    edge: str


def page(comparison: dict[str, Any], arms: Sequence[ArmRun], extras: Extras | None = None) -> str:
    """Render the whole report; arms are the finished runs that the comparison speaks of, in its order."""
    extras = extras or Extras()
    columns = view_model.metric_columns(comparison)
    declared = view_model.contrast_rows(comparison)
    exploratory = view_model.contrast_rows(comparison, "exploratory")
    kinds = view_model.types(arms)
    heat = figures.heat_map(arms, columns)
    charts = {"heat": heat, "tokens": figures.recall_against_tokens(comparison, columns),
              "paired": figures.wins_and_losses(comparison.get("contrasts") or comparison.get("exploratory", [])[:12]),
              "reliability": figures.reliability(arms), "why": attribution.sankey(arms),
              "settings": settings.parallel(comparison, arms)}
    shared, differing = view_model.manifests(arms)
    unlike = settings.by_value(arms)
    first = comparison["contrasts"][0] if comparison.get("contrasts") else {}
    return _environment().get_template("report.html.j2").render(
        c=comparison, columns=columns, extras=extras, kinds=kinds,
        rows=view_model.arm_rows(comparison),
        declared=[(row, strip) for row, strip in zip(declared, forest(comparison.get("contrasts", [])))],
        told=question_types.told(arms), why=attribution.causes(arms), meanings=attribution.MEANING,
        exploratory=exploratory, charts=charts,
        against=against(comparison), notices=view_model.notices(comparison), notes=view_model.notes(comparison),
        type_tables={m: list(zip([a.name for a in arms],
                                 view_model.by_type(arms, m, [k for k, _ in kinds]))) for m in heat},
        shared=shared, differing=differing, unlike=unlike,
        configs=[(arm.name, arm.folder.name, arm.config) for arm in arms],
        chart_data=_json(charts),
        drill_data=_json({**drill_down.drill_down(arms, columns), "first": one_line(first.get("arm", "")),
                          "second": one_line(first.get("comparator", ""))}),
        plotly=_raw(_plotly()), css=_raw(_part("report.css")), script=_raw(_part("report.js")))


def forest(contrasts: Sequence[dict[str, Any]]) -> list[Forest | None]:
    """Place differences and intervals on one common scale (amounts on another); None where nothing is known."""
    scales = {kind: max((abs(c[k]) for c in contrasts for k in ("difference", "low", "high", "smallest_detectable")
                         if is_number(c.get(k)) and view_model.is_cost(c["metric"]) == kind), default=0.0) * 1.08 or 1.0
              for kind in (False, True)}

    def place(value: Any) -> float:
        return round(50 + 50 * float(value) / reach, 2)

    out: list[Forest | None] = []
    for c in contrasts:
        if not is_number(c.get("difference")):
            out.append(None)
            continue
        reach = scales[view_model.is_cost(c["metric"])]
        low, high = (c[k] if is_number(c.get(k)) else c["difference"] for k in ("low", "high"))
        least = c["smallest_detectable"] if is_number(c.get("smallest_detectable")) else 0.0
        out.append(Forest(place(c["difference"]), place(low), place(high), round(50 * least / reach, 2),
                          f"{reach:.2g}"))
    return out


def _json(value: Any) -> Any:
    """JSON that may stand inside a script element: no character that could end it or start markup."""
    write = partial(json.dumps, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        text = write(value)
    except ValueError:  # a number that JSON does not know; looking for it in all cases would take a third of the page
        text = write(_finite(value))
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return _raw(text.encode("utf-8", "replace").decode("utf-8"))


def _finite(value: Any) -> Any:
    """NaN and infinity become null, which is what a browser's JSON knows."""
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not is_number(value) else value


def _raw(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)  # noqa: S704  (our own files, plotly's, and JSON that _json made safe)


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    env = Environment(loader=PackageLoader("memlab.report"), autoescape=True, undefined=StrictUndefined,
                      trim_blocks=True, lstrip_blocks=True, finalize=_shown)
    env.filters.update(figure=format_number, count=format_count, line=one_line, headline=view_model.headline)
    return env


def _shown(value: Any) -> Any:
    """Every text that enters the page loses its control characters; markup of our own passes."""
    return clean(value) if type(value) is str else value


@cache
def _part(name: str) -> str:
    from importlib.resources import files

    return (files("memlab.report") / "templates" / name).read_text(encoding="utf-8")


@cache
def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())
