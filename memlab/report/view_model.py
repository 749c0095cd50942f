"""The content of a report, apart from its layout: the table of arms, marks, contrasts, warnings and notes.

HTML, Markdown and the console draw from these same values, so that they agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from memlab.evaluate.compare import ArmSummary, Comparison, SameOutputs
from memlab.evaluate.contrast import ALPHA, OUTPUTS, ContrastResult
from memlab.evaluate.evidence import BUDGETS, judge_columns
from memlab.evaluate.verbalise import agreement, p_value
from memlab.report import units
from memlab.report.units import is_cost
from memlab.text.display import EMPTY, format_count, format_duration, format_number, format_p

if TYPE_CHECKING:
    from memlab.report.opening import Opening

PREFERRED = ("selected/session/recall_all", "selected/turn/recall_all", "session/recall_all@5",
             "session/recall_any@5", "session/recall_any@1", "session/ndcg@10", "turn/ndcg@10", "turn/recall@10")
"""Metrics that fill the arms table after those of the contrasts."""

ALONE = ("session/recall_any@1", "session/recall_any@5", "session/recall_all@5", "session/recall_all@10",
         "session/ndcg@10", "turn/recall_all@10", "turn/ndcg@10", "macro/type/turn/ndcg@10",
         "macro/corpus/turn/ndcg@10", "turn/recall@10", "turn/mrr@10", "turn/recall_any@1",
         "selected/session/recall_all", "selected/turn/recall_all")
"""Metrics of an arm that was run alone, one per line."""

COLUMNS = 5
"""Metric columns of the arms table; more would not fit beside each other."""

GROUPED = 3
"""Arms with one comparator from which on they are summed up as all others."""

APART = ("selected/k", "context/tokens", "selected/k_mean", "context/tokens_mean")
"""Figures with columns of their own."""

Listed = Literal["contrasts", "exploratory"]
"""The lists of contrasts in a comparison: those declared before the run, and all others."""

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


@dataclass(frozen=True)
class ContrastRow:
    """One contrast: its sentence, its tone (up, down, same or open), (name, text) of its figures, and its numbers."""

    words: str
    tone: str
    facts: tuple[tuple[str, str], ...]
    result: ContrastResult

    @property
    def outcome(self) -> str:
        """The verdict, or of an exploratory contrast its p."""
        p, verdict = self.result["p"], self.result["verdict"]
        return f"p {p_value(p)}" if verdict == "exploratory" and p is not None else verdict


def metric_columns(comparison: Comparison, first: str | None = None) -> list[str]:
    """Choose the metrics of the arms table: ``first``, those of the contrasts, then the preferred ones that exist.

    >>> metric_columns({"arms": {"a": {"metrics": {"session/recall_any@5": {}, "session/mrr": {}}}},
    ...                 "contrasts": [{"metric": "session/mrr"}]})
    ['session/mrr', 'session/recall_any@5']
    """
    available = _metrics(comparison)
    cut, _, rest = (first or "").partition("/")
    beside = [*(f"within_{budget}/{rest}" for budget in BUDGETS), f"selected/{rest}"] * cut.startswith("within_")
    wanted = [units.base(m) for m in (first, *beside, *(c["metric"] for c in comparison["contrasts"])) if m]
    wanted += [*judge_metrics(comparison), *PREFERRED]
    chosen = [m for m in dict.fromkeys(wanted) if m in available and m not in APART]
    return (chosen or sorted(m for m in available if "=" not in m and m not in APART and not m.startswith("macro/"))
            )[:COLUMNS + len(beside) // 2]


def judge_metrics(comparison: Comparison) -> list[str]:
    """Return the judges' metrics, in alphabetical order, without the costs of answers."""
    return [m for m in judge_columns(sorted(_metrics(comparison))) if not m.endswith("_mean")]


def _metrics(comparison: Comparison) -> set[str]:
    return {name for arm in comparison["arms"].values() for name in arm["metrics"]}


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

    Of the verdict's metric the verdict says what is shown, after correction, so that it has no exploratory marks.
    """
    signs: dict[str, list[str]] = {}
    for contrast in [*comparison["contrasts"], *(comparison["exploratory"] if metric != comparison["metric"] else ())]:
        explored, difference = contrast["verdict"] == "exploratory", contrast["difference"]
        sign = _SIGNS.get((tone(contrast), explored))
        if sign and difference and contrast["arm"] == arm and contrast["metric"] == metric:
            p, side = contrast["p"] if explored else contrast["p_adjusted"], "above" if difference > 0 else "below"
            signs.setdefault(sign, []).append(
                f"{units.difference(metric, difference)}: {side} {contrast['comparator']} "
                f"({'exploratory, p' if explored else 'declared, corrected p'} {format_p(p)})")
    return tuple((sign, "; ".join(meanings)) for sign, meanings in signs.items())


def compared_arms(comparison: Comparison) -> str:
    """List what each arm is compared with; empty where nothing is compared.

    >>> rows = [{"arm": a, "comparator": b} for a, b in [("gap", "gap.twin"), ("k5", "k3"), ("k9", "k3"), ("k7", "k3")]]
    >>> compared_arms({"contrasts": rows[:1], "exploratory": rows})
    'gap with its twin, all others with k3'
    """
    comparators: dict[str, list[str]] = {}
    for row in [*comparison["contrasts"], *comparison["exploratory"]]:
        other = "its twin" if row["comparator"] == f"{row['arm']}.twin" else row["comparator"]
        if other not in comparators.setdefault(row["arm"], []):
            comparators[row["arm"]].append(other)
    groups: dict[str, list[str]] = {}
    for arm, others in comparators.items():
        groups.setdefault(" and ".join(others), []).append(arm)
    largest = max(groups, key=lambda others: len(groups[others]), default="")
    rest = largest if len(groups.get(largest, [])) >= GROUPED else None
    parts = [f"{', '.join(arms)} with {others}" for others, arms in groups.items() if others != rest]
    return ", ".join([*parts, *([f"all{' others' if parts else ''} with {rest}"] if rest else [])])


COSTS = (("tokens", "context tokens"), ("K", "units shown"), ("time", "time"))
"""(Name, words) of the last columns of the arms table."""


def arms_table(comparison: Comparison, opening: Opening) -> ArmsTable:
    """Return the arms table as a report shows it: the best first, columns in which all arms agree as a sentence."""
    columns = metric_columns(comparison, opening.metric)
    rows = arm_rows(comparison, opening)
    heads = [*((name, units.label(name)) for name in columns), *COSTS]
    texts = [{(row.cells[i].text, row.cells[i].detail) for row in rows} for i in range(len(heads))]
    same = [i for i in range(1, len(heads)) if len(rows) > 1 and len(texts[i]) == 1]
    facts = [f"{heads[i][1]} {text}" + (f" ({detail})" if detail else "")
             for i in same for text, detail in texts[i] if text != EMPTY]
    return ArmsTable(
        tuple(head for i, head in enumerate(heads) if i not in same),
        tuple(ArmRow(row.name, row.badges, tuple(c for i, c in enumerate(row.cells) if i not in same), row.role,
                     row.apart) for row in rows),
        f"Equal in all arms: {'; '.join(facts)}." if facts else "")


def arm_rows(comparison: Comparison, opening: Opening) -> list[ArmRow]:
    """Return the rows of the arms table: the metric columns, then tokens, K and seconds.

    They are sorted by the opening's metric, the winner first, and arms that look at gold last.
    """
    columns = metric_columns(comparison, opening.metric)
    unchanged = {n["arm"]: n["comparator"] for n in comparison["noop"] if _alarming(n)}
    top, tiers, last = best_cells(comparison, columns), _tiers(comparison), 0
    rows: list[ArmRow] = []
    for name in _ordered(comparison, opening, columns[:1]):
        arm = comparison["arms"][name]
        cells, system = [], not (arm["oracle"] or arm["tainted"])
        for metric in columns:
            estimate = arm["metrics"].get(metric)
            cells.append(Cell(units.write(metric, estimate["value"]),
                              units.write_interval(metric, estimate["low"], estimate["high"]),
                              marks(comparison, name, metric), estimate["value"],
                              system and top.get(metric) == estimate["value"],
                              None if estimate["low"] is None or estimate["high"] is None else
                              (estimate["low"], estimate["high"])) if estimate else Cell(EMPTY))
        cells += [Cell(write(value), value=value) for value, write in (
            (arm["tokens_mean"], format_count), (arm["selected_k_mean"], format_count),
            (arm["seconds"], format_duration))]
        badges = [gold_badge(arm)] * arm["oracle"] + ["tainted: has seen these ids or labels"] * arm["tainted"]
        badges += verdict_badges(arm)
        badges += [f"changed nothing against {unchanged[name]}"] if name in unchanged else []
        tier = tiers.get(name, last)
        role = {opening.winner: "winner", opening.comparator: "comparator"}.get(name, "") if system else "gold"
        rows.append(ArmRow(name, tuple(badges), tuple(cells), role, tier > last == 1))
        last = max(tier, last)
    return rows


def _ordered(comparison: Comparison, opening: Opening, metric: Sequence[str]) -> list[str]:
    def key(name: str) -> tuple[bool, bool, int, float, float]:
        arm = comparison["arms"][name]
        value = max((arm["metrics"][name]["value"] for name in metric if name in arm["metrics"]), default=-math.inf)
        tokens = arm["tokens_mean"]
        return (name != opening.winner, arm["oracle"] or arm["tainted"], tiers.get(name, 0) if led else 0,
                -value, math.inf if tokens is None else tokens)

    tiers = _tiers(comparison)
    led = all(name in tiers for name, arm in comparison["arms"].items() if not (arm["oracle"] or arm["tainted"]))
    return sorted(comparison["arms"], key=key)


def _tiers(comparison: Comparison) -> dict[str, int]:
    """Return arm -> its tier in the verdict's ranking; empty without a ranking."""
    found = comparison["verdict"]
    return {place["arm"]: place["tier"] for place in found["ranking"]} if found and comparison["whole"] is None else {}


def gold_badge(arm: ArmSummary) -> str:
    """Describe an arm that looks at gold.

    >>> gold_badge({"oracle": True, "oracle_of": "plain"}), gold_badge({"oracle": True})
    ('looks at gold: bounds plain alone', 'looks at gold: no system')
    """
    return "looks at gold: " + (f"bounds {arm['oracle_of']} alone" if "oracle_of" in arm else "no system")


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


def _alarming(same: SameOutputs) -> bool:
    """Return whether an arm changed nothing; to be its token-matched twin is to have a constant K, and no alarm."""
    return set(OUTPUTS) <= set(same["identical"]) and same["comparator"] != f"{same['arm']}.twin"


def notices(comparison: Comparison) -> list[tuple[str, str]]:
    """Return (heading, sentence) of each warning above the figures, the no-op arms first."""
    out = []
    for n in comparison["noop"]:
        if _alarming(n):
            outputs = _enumerate(_comparable(comparison, n["identical"]))
            out.append(("Changed nothing", f"{n['arm']} and {n['comparator']} have the same {outputs} for every "
                                           "question. This is not evidence of “no effect”."))
    return [*out, *(("Not here", f"{name} has no finished run.") for name in comparison["missing"]),
            *(("Left out", fault) for fault in comparison["broken"])]


def notes(comparison: Comparison) -> list[str]:
    """Return the comparison's own notes, and one sentence for all pairs of arms that share the same outputs."""
    pairs: dict[tuple[str, ...], list[str]] = {}
    for n in comparison["noop"]:
        if _comparable(comparison, n["identical"]) and not _alarming(n):
            pairs.setdefault(tuple(n["identical"]), []).append(f"{n['arm']} and {n['comparator']}")
    partly = []
    for outputs, arms in pairs.items():
        other = _comparable(comparison, [name for name in OUTPUTS if name not in outputs])
        partly.append(f"Same {_enumerate(_comparable(comparison, outputs))}"
                      + (f", different {_enumerate(other)}" if other else "") + f": {'; '.join(arms)}.")
    return [*comparison["notes"], *partly]


def _comparable(comparison: Comparison, outputs: Sequence[str]) -> list[str]:
    """Leave out the answers where no arm has a reader."""
    return [name for name in outputs if name != "answers" or comparison["answered"]]


def _enumerate(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def contrast_rows(comparison: Comparison, listed: Listed = "contrasts") -> list[ContrastRow]:
    """Return the declared contrasts, or with ``listed="exploratory"`` those others on which any question differs."""
    kept = [c for c in comparison[listed] if listed == "contrasts" or c["wins"] or c["losses"]]
    return [ContrastRow(c["words"], tone(c), _facts(c), c) for c in kept]


def _facts(c: ContrastResult) -> tuple[tuple[str, str], ...]:
    metric = c["metric"]
    power = EMPTY if c["power"] is None else f"{100 * c['power']:.0f} %" + (
        "" if c["planned"] is None else f" for {units.difference(metric, c['planned']).removeprefix('+')}")
    in_groups = agreement(c)
    if c["tokens"] is None:
        outcome = "wins / losses / ties", " / ".join(format_number(n) for n in (c["wins"], c["losses"], c["ties"]))
    else:
        outcome = "token range", " to ".join(f"{n:,.0f}" for n in c["tokens"])
    return (("difference", units.difference(metric, c["difference"])),
            ("95 % interval", units.difference_interval(metric, c["low"], c["high"]) or EMPTY),
            ("p, uncorrected", format_p(c["p"])), ("p, corrected", format_p(c["p_adjusted"])),
            ("sign-flip p", format_p(c["p_sign_flip"])), outcome,
            ("smallest detectable", units.difference(metric, c["smallest_detectable"]).removeprefix("+")),
            ("power", power), ("test", f"{c['test'] or 'none'}, n = {c['n']:,}{', ' * bool(in_groups)}{in_groups}"))


def best_cells(comparison: Comparison, columns: Sequence[str]) -> dict[str, float]:
    """Return metric column -> its highest value among arms that do not look at gold, where arms differ in it."""
    out = {}
    for metric in columns:
        values = [arm["metrics"][metric]["value"] for arm in comparison["arms"].values()
                  if metric in arm["metrics"] and not arm["oracle"] and not arm["tainted"]]
        if len(set(values)) > 1 and not is_cost(metric):
            out[metric] = max(values)
    return out
