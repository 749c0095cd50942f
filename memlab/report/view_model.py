"""What a report says, before anybody asks how it looks: columns, rows, marks and contrasts.

HTML, Markdown and the console draw from these same values, so that they cannot tell different stories.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memlab.evaluate.answers import judges
from memlab.evaluate.verbalise import agreement
from memlab.harness.results import ArmRun
from memlab.text.display import (
    EMPTY,
    format_count,
    format_duration,
    format_interval,
    format_number,
    format_p,
    format_signed,
    is_number,
)

ALPHA = 0.05
"""Below this adjusted p a difference is marked."""

PREFERRED = ("selected/session/recall_all", "selected/turn/recall_all", "session/recall_all@5",
             "session/recall_any@5", "session/recall_any@1", "session/ndcg@10", "turn/ndcg@10", "turn/recall@10")
"""Metrics that fill the arms table after those of the contrasts."""

ALONE = ("session/recall_any@1", "session/recall_any@5", "session/recall_all@5", "session/recall_all@10",
         "session/ndcg@10", "turn/recall_all@10", "turn/ndcg@10", "selected/session/recall_all",
         "selected/turn/recall_all")
"""Metrics of an arm that was run alone, a line each."""

COLUMNS = 6
"""Metric columns of the arms table; more would not fit beside each other."""

OUTPUTS = ("ranking", "selection", "context", "answers")
"""What the no-op detector compares."""

ELSEWHERE = ("arm", "notes", "reliability", "constant_k")
"""Parts of a manifest that the report shows in a section of their own."""

APART = ("selected/k", "context/tokens", "selected/k_mean", "context/tokens_mean")
"""Figures with columns of their own."""


@dataclass(frozen=True)
class Cell:
    """A figure as text, its interval, its marks with their meaning in words, and the number to sort by."""

    text: str
    detail: str = ""
    marks: tuple[tuple[str, str], ...] = ()
    value: float | None = None


@dataclass(frozen=True)
class ArmRow:
    """One arm of the arms table; runs from its name over its badges to the cells, one a column."""

    name: str
    badges: tuple[str, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class ContrastRow:
    """One paired comparison in words and figures; tone is up, down, same or open."""

    arm: str
    comparator: str
    metric: str
    words: str
    tone: str
    declared: bool
    facts: tuple[tuple[str, str], ...]
    numbers: dict[str, Any]


def metric_columns(comparison: dict[str, Any]) -> list[str]:
    """Choose the metrics of the arms table: those of the contrasts first, then the preferred ones that exist.

    >>> metric_columns({"arms": {"a": {"metrics": {"session/recall_any@5": {}, "session/mrr": {}}}},
    ...                 "contrasts": [{"metric": "session/mrr"}]})
    ['session/mrr', 'session/recall_any@5']
    """
    there = {name for arm in comparison["arms"].values() for name in arm["metrics"]}
    wanted = [*(c["metric"] for c in comparison.get("contrasts", [])), *said(comparison), *PREFERRED]
    chosen = [m for m in dict.fromkeys(wanted) if m in there and m not in APART]
    return (chosen or sorted(m for m in there if "=" not in m and m not in APART))[:COLUMNS]


def said(comparison: dict[str, Any]) -> list[str]:
    """Name the judges' metrics, in alphabetical order; a judge's score is no cost."""
    there = {name for arm in comparison["arms"].values() for name in arm["metrics"]}
    return [m for m in judges(sorted(there)) if not m.endswith("_mean")]


def outcome(comparison: dict[str, Any]) -> str:
    """The metric by which single questions are judged in the drill-down: that of the first contrast."""
    columns = metric_columns(comparison)
    return columns[0] if columns else ""


def tone(contrast: dict[str, Any]) -> str:
    """Say how a contrast ended: up or down (a difference is shown), same (changed nothing) or open.

    >>> tone({"verdict": "shown", "p_adjusted": 0.01, "difference": -0.1})
    'down'
    """
    if contrast.get("verdict") == "changed nothing":
        return "same"
    adjusted: Any = contrast.get("p_adjusted")
    p: Any = adjusted if is_number(adjusted) else contrast.get("p")
    difference: Any = contrast.get("difference")
    if not is_number(p) or not is_number(difference) or p > ALPHA or difference == 0:
        return "open"
    return "up" if difference > 0 else "down"


_SIGNS = {("up", True): "▲", ("down", True): "▼", ("up", False): "△", ("down", False): "▽"}


def marks(comparison: dict[str, Any], arm: str, metric: str) -> tuple[tuple[str, str], ...]:
    """Mark a figure: ▲ ▼ a declared contrast that holds after correction, △ ▽ an exploratory one with p < .05."""
    found = []
    for declared, listed in ((True, "contrasts"), (False, "exploratory")):
        for contrast in comparison.get(listed, []):
            sign = _SIGNS.get((tone(contrast), declared))
            if sign and contrast["arm"] == arm and contrast["metric"] == metric:
                p = contrast["p_adjusted"] if declared else contrast["p"]
                label = "declared, adjusted p" if declared else "exploratory, p"
                gap = "above" if contrast["difference"] > 0 else "below"
                found.append((sign, f"{format_signed(contrast['difference'])}: {gap} {contrast['comparator']} "
                                    f"({label} {format_p(p)})"))
    return tuple(found[:3])


def arm_rows(comparison: dict[str, Any]) -> list[ArmRow]:
    """Rows of the arms table: the metric columns, then tokens, K and seconds."""
    columns = metric_columns(comparison)
    unchanged = {n["arm"]: n["comparator"] for n in comparison.get("noop", []) if changed_nothing(n)}
    rows = []
    for name, arm in comparison["arms"].items():
        cells = []
        for metric in columns:
            entry = arm["metrics"].get(metric) or {}
            value = entry.get("value")
            cells.append(Cell(format_number(value), format_interval(entry.get("low"), entry.get("high")),
                              marks(comparison, name, metric), value if is_number(value) else None))
        for key, write in (("tokens_mean", format_count), ("selected_k_mean", format_count),
                           ("seconds", format_duration)):
            value = arm.get(key)
            cells.append(Cell(write(value), value=value if is_number(value) else None))
        badges = ["looks at gold"] if arm.get("oracle") else []
        badges += ["tainted: sees the benchmark's ids"] if arm.get("tainted") else []
        badges += [f"changed nothing against {unchanged[name]}"] if name in unchanged else []
        rows.append(ArmRow(name, tuple(badges), tuple(cells)))
    return rows


def changed_nothing(noop: dict[str, Any]) -> bool:
    """Whether two arms agree in every output; arms that differ in K alone share no more than a ranking."""
    return set(OUTPUTS) <= set(noop["identical"])


def notices(comparison: dict[str, Any]) -> list[tuple[str, str]]:
    """What must be read before any figure: (heading, sentence), the no-op arms first."""
    out = []
    for n in comparison.get("noop", []):
        if changed_nothing(n):
            same = _listed(_spoken(comparison, n["identical"]))
            out.append(("Changed nothing", f"{n['arm']} and {n['comparator']} have the same {same} for every question. "
                                           "This is not evidence of “no effect”."))
    return out + [("Not here", f"{name} has no finished run.") for name in comparison.get("missing", [])]


def notes(comparison: dict[str, Any]) -> list[str]:
    """The comparison's own notes, and which arms agree in part, one sentence for all that agree in the same."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for n in comparison.get("noop", []):
        if _spoken(comparison, n["identical"]) and not changed_nothing(n):
            alike.setdefault(tuple(n["identical"]), []).append(f"{n['arm']} and {n['comparator']}")
    partly = []
    for same, pairs in alike.items():
        other = _spoken(comparison, [name for name in OUTPUTS if name not in same])
        partly.append(f"Same {_listed(_spoken(comparison, same))}, different {_listed(other)}: {'; '.join(pairs)}.")
    return [*comparison.get("notes", []), *partly]


def _spoken(comparison: dict[str, Any], outputs: Sequence[str]) -> list[str]:
    """Leave answers out where nobody was asked for any."""
    return [name for name in outputs if name != "answers" or comparison.get("answered")]


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def is_cost(metric: str) -> bool:
    """Whether a metric is an amount (tokens, K), whose differences share no scale with those of rates."""
    return metric.rpartition("/")[2].removesuffix("_mean") in ("tokens", "k")


def contrast_rows(comparison: dict[str, Any], listed: str = "contrasts") -> list[ContrastRow]:
    """The declared contrasts, or with ``listed="exploratory"`` those others on which any question differs."""
    kept = [c for c in comparison.get(listed, []) if listed == "contrasts" or c.get("wins") or c.get("losses")]
    return [ContrastRow(c["arm"], c["comparator"], c["metric"], c.get("words") or _words(c), tone(c),
                        listed == "contrasts", _facts(c), c) for c in kept]


def headline(words: str) -> str:
    """Leave out the figures in brackets, for where they stand beside the sentence anyway.

    >>> headline("gap finds more than its twin (session/mrr, 57 questions; p < .001): shown.")
    'gap finds more than its twin: shown.'
    """
    found = re.fullmatch(r"(.*?) \(.*; .*\): (.*)", words)
    return f"{found[1]}: {found[2]}" if found else words


def _words(contrast: dict[str, Any]) -> str:
    """Say a contrast that came without words."""
    return (f"{contrast['arm']} against {contrast['comparator']} on {contrast['metric']}: "
            f"{format_signed(contrast.get('difference'))}")


def _facts(c: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    places = 1 if is_cost(c["metric"]) else 3

    def gap(value: Any) -> str:
        return format_signed(value, places)

    least, planned = format_number(c.get("smallest_detectable"), places), c.get("planned")
    power = format_number(c.get("power"), 2) + (f" for {format_number(planned, places)}" if is_number(planned) else "")
    conversations = f", {agreement(c)}" if is_number(c.get("clusters")) else ""
    return (("difference", gap(c.get("difference"))),
            ("95 % interval", format_interval(c.get("low"), c.get("high"), gap) or EMPTY),
            ("p", format_p(c.get("p"))), ("adjusted p", format_p(c.get("p_adjusted"))),
            ("wins / losses / ties", " / ".join(_whole(c.get(k)) for k in ("wins", "losses", "ties"))),
            ("smallest detectable", least), ("power", power if is_number(c.get("power")) else EMPTY),
            ("test", f"{c.get('test') or 'none'}, n = {_whole(c.get('n'))}{conversations}"))


def _whole(value: Any) -> str:
    return f"{int(value):,}" if is_number(value) else EMPTY


def types(arms: Sequence[ArmRun]) -> list[tuple[str, int]]:
    """Question types with the number of scored questions, in alphabetical order."""
    sizes: dict[str, int] = {}
    for arm in arms:
        here = arm.questions.filter(arm.questions["scored"]).group_by("category").len()
        for category, size in here.iter_rows():
            if category is not None:
                sizes[category] = max(size, sizes.get(category, 0))
    return sorted(sizes.items())


def by_type(arms: Sequence[ArmRun], metric: str, categories: Sequence[str]) -> list[list[float | None]]:
    """Values of a metric, a row an arm, a column a type; None where undefined."""
    rows = []
    for arm in arms:
        values = (arm.metrics.get(f"type={category}/{metric}") for category in categories)
        rows.append([float(v) if v is not None and is_number(v) else None for v in values])
    return rows


def flat(value: Any, prefix: str = "") -> dict[str, str]:
    """Flatten a manifest to dotted names and short texts.

    >>> flat({"versions": {"polars": "1.2"}, "seeds": [1, 2]})
    {'versions.polars': '1.2', 'seeds': '1, 2'}
    """
    if isinstance(value, dict):
        return {k: v for name, inner in value.items()
                for k, v in flat(inner, f"{prefix}.{name}" if prefix else str(name)).items()}
    if isinstance(value, list | tuple) and any(isinstance(v, dict | list) for v in value):
        return {prefix: f"{len(value)} entries"}
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else _plain(value)
    return {prefix: text if len(text) <= 300 else text[:297] + "..."}


def _plain(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: EMPTY}[value]
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def manifests(arms: Sequence[ArmRun]) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Split the manifests into what all arms share and what differs: name -> value, name -> arm -> value."""
    tables = {arm.name: flat({k: v for k, v in arm.manifest.items() if k not in ELSEWHERE}) for arm in arms}
    names = list(dict.fromkeys(name for table in tables.values() for name in table))
    shared, differing = {}, {}
    for name in names:
        values = {arm: table.get(name, EMPTY) for arm, table in tables.items()}
        if len(set(values.values())) == 1:
            shared[name] = next(iter(values.values()))
        else:
            differing[name] = values
    return shared, differing
