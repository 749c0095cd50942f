"""The table of arms, as every form of a report shows it: its columns, rows and marks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from memlab.evaluate.compare import ArmSummary, Comparison, SameOutputs, compared_metrics, judge_metrics
from memlab.evaluate.contrast import ALPHA, OUTPUTS, ContrastResult
from memlab.evaluate.evidence import BUDGETS
from memlab.report import units
from memlab.report.opening import Opening
from memlab.support.text.display import EMPTY, format_count, format_duration, format_p

PREFERRED = ("selected/session/recall_all", "selected/turn/recall_all", "session/recall_all@5",
             "session/recall_any@5", "session/recall_any@1", "session/ndcg@10", "turn/ndcg@10", "turn/recall@10")
"""Metrics that fill the arms table after those of the contrasts."""

ALONE = ("session/recall_any@1", "session/recall_any@5", "session/recall_all@5", "session/recall_all@10",
         "session/ndcg@10", "turn/recall_all@10", "turn/ndcg@10", "macro/type/turn/ndcg@10",
         "macro/corpus/turn/ndcg@10", "turn/recall@10", "round/recall@10", "turn/mrr@10", "turn/recall_any@1",
         "selected/session/recall_all", "selected/turn/recall_all")
"""Metrics of an arm that was run alone, one per line."""

COLUMNS = 5
"""Metric columns of the arms table; more would not fit beside each other."""

APART = ("selected/k", "context/tokens", "selected/k_mean", "context/tokens_mean")
"""Figures with columns of their own."""

_SIGNS = {("up", False): "▲", ("down", False): "▼", ("up", True): "△", ("down", True): "▽"}
"""(Tone, whether a contrast was not declared) -> its mark."""


@dataclass(frozen=True)
class Cell:
    """A figure as text, its interval, its marks with their meaning, its number, if it is the highest, and its ends."""

    text: str
    detail: str = ""
    marks: tuple[tuple[str, str], ...] = ()
    value: float | None = None
    best: bool = False
    ends: tuple[float, float] | None = None


@dataclass(frozen=True)
class ArmRow:
    """One row of the arms table: the arm's name, its badges, and one cell per column.

    ``role`` is winner, comparator (what it was compared with), gold for arms that look at it, or "". The systems from
    the row that is ``apart`` on are shown to be behind the first.
    """

    name: str
    badges: tuple[str, ...]
    cells: tuple[Cell, ...]
    role: str = ""
    apart: bool = False


@dataclass(frozen=True)
class ArmsTable:
    """The arms table: (name, words) of each column, the rows, and a sentence for the columns that all arms agree in."""

    heads: tuple[tuple[str, str], ...]
    rows: tuple[ArmRow, ...]
    same: str


def metric_columns(comparison: Comparison, first: str | None = None) -> list[str]:
    """Choose the metrics of the arms table: ``first``, those of the contrasts, then the preferred ones that exist.

    >>> metric_columns({"arms": {"a": {"metrics": {"session/recall_any@5": {}, "session/mrr": {}}}},
    ...                 "contrasts": [{"metric": "session/mrr"}]})
    ['session/mrr', 'session/recall_any@5']
    """
    available = compared_metrics(comparison)
    cut, _, rest = (first or "").partition("/")
    other_cuts = [*(f"within_{budget}/{rest}" for budget in BUDGETS), f"selected/{rest}"] * cut.startswith("within_")
    wanted = [units.base(m) for m in (first, *other_cuts, *(c["metric"] for c in comparison["contrasts"])) if m]
    wanted += [*judge_metrics(comparison), *PREFERRED]
    columns = [m for m in dict.fromkeys(wanted) if m in available and m not in APART]
    others = sorted(m for m in available if "=" not in m and m not in APART and not m.startswith("macro/"))
    return (columns or others)[:COLUMNS + len(other_cuts) // 2]


def tone(contrast: ContrastResult) -> str:
    """Return how a contrast ended: up or down (a difference is shown), same (changed nothing) or open.

    >>> tone({"verdict": "shown", "p": 0.001, "p_adjusted": 0.01, "difference": -0.1})
    'down'
    """
    if contrast["verdict"] == "changed nothing":
        return "same"
    p = contrast["p"] if contrast["p_adjusted"] is None else contrast["p_adjusted"]
    difference = contrast["difference"]
    if p is None or p > ALPHA or not difference:
        return "open"
    return "up" if difference > 0 else "down"


def marks(comparison: Comparison, arm: str, metric: str) -> tuple[tuple[str, str], ...]:
    """Mark a figure: ▲ ▼ a declared contrast that holds after correction, △ ▽ an exploratory one with p < .05.

    The verdict says what is shown of its own metric, so that this metric has no exploratory marks.
    """
    signs: dict[str, list[str]] = {}
    for contrast in [*comparison["contrasts"], *(comparison["exploratory"] if metric != comparison["metric"] else ())]:
        exploratory, difference = contrast["verdict"] == "exploratory", contrast["difference"]
        sign = _SIGNS.get((tone(contrast), exploratory))
        if sign and difference and contrast["arm"] == arm and contrast["metric"] == metric:
            p, side = contrast["p"] if exploratory else contrast["p_adjusted"], "above" if difference > 0 else "below"
            signs.setdefault(sign, []).append(
                f"{units.difference(metric, difference)}: {side} {contrast['comparator']} "
                f"({'exploratory, p' if exploratory else 'declared, corrected p'} {format_p(p)})")
    return tuple((sign, "; ".join(meanings)) for sign, meanings in signs.items())


GOLD, TAINTED = "looks at gold: no system", "tainted: has seen these ids or labels"

COSTS = (("tokens", "context tokens"), ("K", "units shown"), ("time", "processor time"))
"""(Name, words) of the last columns of the arms table."""


def arms_table(columns: Sequence[str], rows: Sequence[ArmRow]) -> ArmsTable:
    """Return the arms table with the columns in which all arms agree as a sentence."""
    heads = [*((name, units.label(name)) for name in columns), *COSTS]
    texts = [{(row.cells[i].text, row.cells[i].detail) for row in rows} for i in range(len(heads))]
    same = [i for i in range(1, len(heads)) if len(rows) > 1 and len(texts[i]) == 1]
    facts = [f"{heads[i][1]} {text}" + (f" ({detail})" if detail else "")
             for i in same for text, detail in texts[i] if text != EMPTY]
    kept = [i for i in range(len(heads)) if i not in same]
    return ArmsTable(tuple(heads[i] for i in kept),
                     tuple(replace(row, cells=tuple(row.cells[i] for i in kept)) for row in rows),
                     f"Equal in all arms: {'; '.join(facts)}." if facts else "")


def arm_rows(comparison: Comparison, opening: Opening, columns: Sequence[str]) -> list[ArmRow]:
    """Return the rows of the arms table: the metric columns, then tokens, K and seconds.

    They are sorted by the first column, the winner first, and arms that look at gold last.
    """
    unchanged = {n["arm"]: n["comparator"] for n in comparison["noop"] if is_alarming(n)}
    top, tiers, last = _best_values(comparison, columns), _tiers(comparison), 0
    rows: list[ArmRow] = []
    for name in _order(comparison, opening, columns[:1]):
        arm = comparison["arms"][name]
        system = not (arm["oracle"] or arm["tainted"])
        cells = [_cell(comparison, name, metric, top.get(metric) if system else None) for metric in columns]
        cells += [Cell(write(value), value=value) for value, write in (
            (arm["tokens_mean"], format_count), (arm["selected_k_mean"], format_count),
            (arm["seconds"], format_duration))]
        badges = [GOLD] * arm["oracle"] + [TAINTED] * arm["tainted"]
        badges += verdict_badges(arm)
        badges += [f"changed nothing against {unchanged[name]}"] if name in unchanged else []
        tier = tiers.get(name, last)
        role = {opening.winner: "winner", opening.comparator: "comparator"}.get(name, "") if system else "gold"
        rows.append(ArmRow(name, tuple(badges), tuple(cells), role, tier > last == 1))
        last = max(tier, last)
    return rows


def _cell(comparison: Comparison, name: str, metric: str, top: float | None) -> Cell:
    estimate = comparison["arms"][name]["metrics"].get(metric)
    if estimate is None:
        return Cell(EMPTY)
    value, low, high = estimate["value"], estimate["low"], estimate["high"]
    return Cell(units.write(metric, value), units.write_interval(metric, low, high), marks(comparison, name, metric),
                value, top == value, None if low is None or high is None else (low, high))


def _order(comparison: Comparison, opening: Opening, metric: Sequence[str]) -> list[str]:
    def key(name: str) -> tuple[bool, bool, int, float, float]:
        arm = comparison["arms"][name]
        value = max((arm["metrics"][name]["value"] for name in metric if name in arm["metrics"]), default=-math.inf)
        tokens = arm["tokens_mean"]
        return (name != opening.winner, arm["oracle"] or arm["tainted"], tiers.get(name, 0) if by_tier else 0,
                -value, math.inf if tokens is None else tokens)

    tiers = _tiers(comparison)
    by_tier = all(name in tiers for name, arm in comparison["arms"].items() if not (arm["oracle"] or arm["tainted"]))
    return sorted(comparison["arms"], key=key)


def _tiers(comparison: Comparison) -> dict[str, int]:
    """Return arm -> its tier in the verdict's ranking; empty without a ranking."""
    found = comparison["verdict"]
    return {place["arm"]: place["tier"] for place in found["ranking"]} if found and comparison["whole"] is None else {}


def _best_values(comparison: Comparison, columns: Sequence[str]) -> dict[str, float]:
    """Return metric column -> its highest value among arms that do not look at gold, where arms differ in it."""
    out = {}
    for metric in columns:
        values = [arm["metrics"][metric]["value"] for arm in comparison["arms"].values()
                  if metric in arm["metrics"] and not arm["oracle"] and not arm["tainted"]]
        if len(set(values)) > 1 and not units.is_cost(metric):
            out[metric] = max(values)
    return out


def verdict_badges(arm: ArmSummary) -> list[str]:
    """Return what stands beside an arm's accuracies: the answers that they do not count, or count by half a reply.

    >>> verdict_badges({"verdicts": {"strict": {"answers": 60, "without": 3, "incomplete": 0}}})
    ['3 of 60 answers without a verdict by strict']
    """
    badges = []
    for judge, counts in arm.get("verdicts", {}).items():
        for number, what in ((counts["without"], "answers without a verdict by"),
                             (counts["incomplete"], "verdicts from empty or cut replies of")):
            badges += [f"{number:,} of {counts['answers']:,} {what} {judge}"] * (number > 0)
    return badges


def is_alarming(same: SameOutputs) -> bool:
    """Return whether an arm changed nothing; to be its token-matched twin is to have a constant K, and no alarm."""
    return set(OUTPUTS) <= set(same["identical"]) and same["comparator"] != f"{same['arm']}.twin"
