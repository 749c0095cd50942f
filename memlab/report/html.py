"""The report as one HTML file that needs no network: styles, script, plotly and data travel inside it.

Text of benchmarks and models is escaped by jinja2 where it becomes markup. Where it becomes data it is packed, and the
script only ever sets it as text. A content policy in the page forbids every request.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from memlab.evaluate.compare import Comparison, finite
from memlab.evaluate.contrast import ContrastResult
from memlab.harness.results import ArmRun
from memlab.report import arm_settings, console, drill_down, figures, sections, view_model
from memlab.report.sections import COLUMNS as TURN_COLUMNS
from memlab.report.sections import TURNS, turn_metrics
from memlab.text.display import clean, format_count, format_number, one_line, replace_surrogates


def pack(text: str) -> str:
    """Return gzip of the UTF-8 text in base64: no character of it can end a script element. Same text, same result.

    >>> unpack(pack("</script> grün"))
    '</script> grün'
    """
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=9, mtime=0)).decode("ascii")


def unpack(packed: str) -> str:
    """Return the text that ``pack`` packed."""
    return gzip.decompress(base64.b64decode(packed)).decode()


QUESTIONS = 5_500_000
"""Most characters of the packed questions; with plotly's 2 MB a page stays under 8 MB."""


@dataclass(frozen=True)
class Forest:
    """The place of a contrast's interval in a strip 0 to 100 wide with zero at 50; lengths in the same unit."""

    at: float
    low: float
    high: float
    band: float
    edge: str


def page(comparison: Comparison, arms: Sequence[ArmRun], older: Sequence[str] = ()) -> str:
    """Render the whole report; ``arms`` are the finished runs of the comparison, in its order.

    ``older`` names run folders of the same arms that the comparison does not use.
    """
    columns = view_model.metric_columns(comparison)
    declared = view_model.contrast_rows(comparison)
    exploratory = view_model.contrast_rows(comparison, "exploratory")
    kinds = view_model.types(arms)
    heat = figures.heat_map(arms, columns)
    charts = {"heat": heat, "tokens": figures.recall_against_tokens(comparison, columns),
              "paired": figures.wins_and_losses(comparison["contrasts"] or comparison["exploratory"][:12]),
              "reliability": figures.reliability(arms), "why": sections.sankey(arms),
              "settings": arm_settings.parallel(comparison, arms)}
    shared, differing = arm_settings.manifests(arms)
    first, second = next(((one_line(c["arm"]), one_line(c["comparator"])) for c in comparison["contrasts"]), ("", ""))
    return _environment().get_template("report.html.j2").render(
        c=comparison, pairing=view_model.pairing(comparison), columns=columns, older=older, kinds=kinds,
        rows=view_model.arm_rows(comparison), opening=console.opening(comparison), tiers=console.tiers(comparison),
        declared=list(zip(declared, forest(comparison["contrasts"]))),
        classes=sections.class_tables(arms), why=sections.causes(arms), meanings=sections.VIEW_MEANINGS,
        importances=sections.importance_tables(arms), importance_legend=sections.GAINS,
        turns=turn_metrics(comparison), turn_columns=TURN_COLUMNS, turn_legend=TURNS,
        exploratory=exploratory, charts=charts, compared=view_model.compared_arms(comparison),
        notices=view_model.notices(comparison), notes=view_model.notes(comparison),
        type_tables={m: list(zip([a.name for a in arms],
                                 view_model.by_type(arms, m, [k for k, _ in kinds]))) for m in heat},
        shared=shared, differing=differing, commands=arm_settings.commands(arms), settings=arm_settings.by_value(arms),
        configs=[(arm.name, arm.folder.name, arm.config) for arm in arms],
        chart_data=pack(_json(charts)), drill_data=_questions(arms, columns, first, second), plotly=_plotly(),
        css=_raw(_template("report.css")), script=_raw(_template("report.js")))


def _questions(arms: Sequence[ArmRun], columns: Sequence[str], first: str, second: str) -> str:
    """Return the packed data of the questions, of fewer of them where all would take more than ``QUESTIONS``."""
    budget = drill_down.BUDGET
    while True:
        data = drill_down.drill_down(arms, columns, budget)
        packed = pack(_json({**data, "first": first, "second": second}))
        if len(packed) <= QUESTIONS:
            return packed
        budget = int(min(budget, data["bytes"]) * QUESTIONS / len(packed) * 0.98)


def forest(contrasts: Sequence[ContrastResult]) -> list[Forest | None]:
    """Place differences and intervals on one common scale (amounts on another); None where there is no difference."""
    scales = {kind: max((abs(value) for c in contrasts if view_model.is_cost(c["metric"]) == kind
                         for value in (c["difference"], c["low"], c["high"], c["smallest_detectable"])
                         if value is not None), default=0.0) * 1.08 or 1.0 for kind in (False, True)}

    def place(value: float) -> float:
        return round(50 + 50 * value / reach, 2)

    out: list[Forest | None] = []
    for c in contrasts:
        difference, reach = c["difference"], scales[view_model.is_cost(c["metric"])]
        if difference is None:
            out.append(None)
            continue
        low, high = (difference if bound is None else bound for bound in (c["low"], c["high"]))
        out.append(Forest(place(difference), place(low), place(high),
                          round(50 * (c["smallest_detectable"] or 0.0) / reach, 2), f"{reach:.2g}"))
    return out


def _json(value: Any) -> str:
    """Return JSON without NaN or infinity, which become null, and without halves of characters."""
    write = partial(json.dumps, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        text = write(value)
    except ValueError:  # NaN or infinity; replacing them in every case would take a third of the page's time
        text = write(finite(value))
    return replace_surrogates(text)


def _raw(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)  # noqa: S704  (our own files)


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    env = Environment(loader=PackageLoader("memlab.report"), autoescape=True, undefined=StrictUndefined,
                      trim_blocks=True, lstrip_blocks=True, finalize=_clean)
    env.filters.update(figure=format_number, count=format_count, line=one_line, headline=view_model.headline)
    return env


def _clean(value: Any) -> Any:
    """Make control characters of a text visible; our own markup passes."""
    return clean(value) if type(value) is str else value


@cache
def _template(name: str) -> str:
    from importlib.resources import files

    return (files("memlab.report") / "templates" / name).read_text(encoding="utf-8")


@cache
def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return pack(str(get_plotlyjs()))
