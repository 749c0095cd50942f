"""Optional sections of a report: error attribution, question classes, turn metrics, and learned rankings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from memlab.evaluate.attribution import CAUSES
from memlab.evaluate.compare import Comparison
from memlab.evaluate.evidence import STEPS, VIEWS
from memlab.evaluate.summary import accuracy, confusion, right_by_type
from memlab.harness.results import ArmRun
from memlab.question_types import VOCABULARY
from memlab.report.arm_settings import slot_names
from memlab.report.figures import BLUE, GREY, VERMILLION, layout
from memlab.text.display import format_number, format_signed, one_line

FAINT, TINTS = "rgba(87,96,106,.22)", {"right": "rgba(0,114,178,.35)", "wrong": "rgba(213,94,0,.30)"}
"""Colours of the bands; plotly's own would be white on this page."""

DECLINE = "no evidence: to decline"
VIEW_MEANINGS = {"any": "evidence counts as shown when any piece of it is", "all": "only when all of it is"}


@dataclass(frozen=True)
class CauseTable:
    """An arm's causes under one view: (cause, wrong answers, right answers that turn) and the sizes of the samples."""

    arm: str
    view: str
    rows: tuple[tuple[str, int, int], ...]
    wrong: int
    right: int

    @property
    def words(self) -> str:
        """How many wrong answers had their evidence in the context: the basis of any rate of reasoning errors."""
        lost = sum(n for cause, n, _ in self.rows if cause in STEPS)
        return (f"{self.arm}, {self.view} evidence: {lost} of {self.wrong} wrong answers lack evidence, "
                f"{self.wrong - lost} do not" if self.wrong else f"{self.arm}: no wrong answer was sampled")


def causes(arms: Sequence[ArmRun]) -> list[CauseTable]:
    """Count the causes of every arm with an attribution, in the order in which they are tried."""
    out = []
    for arm in arms:
        if arm.attribution is None:
            continue
        for view in VIEWS:
            sampled = arm.attribution.filter((pl.col("view") == view) & pl.col("sampled"))
            wrong, right = (Counter(sampled.filter(pl.col("right") == r)["cause"]) for r in (False, True))
            rows = tuple((c, wrong[c], right[c]) for c in CAUSES if wrong[c] or right[c])
            out.append(CauseTable(one_line(arm.name), view, rows, wrong.total(), right.total()))
    return out


def flows(table: pl.DataFrame, view: str) -> Counter[tuple[str, str]]:
    """Count the links (from, to): all questions, how far their evidence got, right or wrong, sampled cause."""
    out: Counter[tuple[str, str]] = Counter()
    for reached, right, cause in table.filter(pl.col("view") == view).select("reached", "right", "cause").iter_rows():
        middle, end = reached or DECLINE, "right" if right else "wrong"
        out["questions", middle] += 1
        out[middle, end] += 1
        if not right:
            out["wrong", cause if cause is not None else "not sampled"] += 1
    return out


def sankey(arms: Sequence[ArmRun]) -> dict[str, dict[str, Any]]:
    """Return one diagram per arm and view: all questions, how far the evidence got, right or wrong, and the cause."""
    out = {}
    for arm in arms:
        if arm.attribution is None:
            continue
        for view in VIEWS:
            links = flows(arm.attribution, view)
            order = list(dict.fromkeys(["questions", *STEPS[::-1], DECLINE, "right", "wrong", *CAUSES, "not sampled"]))
            # a step and a cause may share a name ("cut by K"): the cause is a node of its own
            ends = {("wrong", b): f"{b} " for a, b in links if a == "wrong"}
            names = [n for n in order if any(n in pair for pair in links if pair not in ends)]
            names += [ends["wrong", c] for c in order if ("wrong", c) in ends]
            at = {name: i for i, name in enumerate(names)}
            pairs = [(a, ends.get((a, b), b), n) for (a, b), n in sorted(links.items())]
            colours = {"right": BLUE, "wrong": VERMILLION}
            out[f"{one_line(arm.name)}, {view}"] = {
                "data": [{"type": "sankey", "arrangement": "snap",
                          "node": {"label": [n.strip() for n in names], "pad": 14, "thickness": 14,
                                   "color": [colours.get(n, GREY) for n in names]},
                          "link": {"source": [at[a] for a, _, _ in pairs], "target": [at[b] for _, b, _ in pairs],
                                   "value": [n for _, _, n in pairs],
                                   "color": [TINTS.get(b, TINTS.get(a, FAINT)) for a, b, _ in pairs]}}],
                "layout": layout(460)}
    return out


@dataclass(frozen=True)
class ClassTable:
    """One classifier's table; rows are (type, count per class, how many fit the type, n).

    The third is None for a type that no class fits.
    """

    classifier: str
    arms: tuple[str, ...]
    classes: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int, ...], int | None, int], ...]
    right: int
    n: int

    @property
    def words(self) -> str:
        """The accuracy in a sentence."""
        share = (f"{self.right:,} of {self.n:,} questions ({self.right / self.n:.0%}) have a class that fits their type"
                 if self.n else "no type here has a class")
        return f"{self.classifier} ({', '.join(self.arms)}): {share}"


def class_tables(arms: Sequence[ArmRun]) -> list[ClassTable]:
    """Tabulate the classes of each classifier; arms whose questions have the same classes share one table.

    Arms without classes, and questions without types, have none.
    """
    groups: dict[tuple[tuple[str, str, int], ...], list[ArmRun]] = {}
    for arm in arms:
        counts = confusion(arm.classes, arm.questions)
        if counts.height and not arm.classes.is_empty():
            groups.setdefault(tuple(counts.iter_rows()), []).append(arm)
    return [_table(group, whole=len(group) == len(arms)) for group in groups.values()]


def _table(group: Sequence[ArmRun], whole: bool) -> ClassTable:
    counts = confusion(group[0].classes, group[0].questions)
    names = tuple(name for name in VOCABULARY if name in set(counts["class"]))
    cells = {(kind, name): n for kind, name, n in counts.iter_rows()}
    rows = tuple((one_line(kind), tuple(cells.get((kind, name), 0) for name in names), fit, n)
                 for kind, fit, n in right_by_type(counts).iter_rows())
    classifier = one_line(slot_names(group[0]).get("classify", "classes"))
    arms = ("all arms",) if whole else tuple(one_line(arm.name) for arm in group)
    return ClassTable(classifier, arms, names, rows, *accuracy(counts))


COLUMNS = {
    "nDCG@10": "turn/ndcg@10",
    "nDCG@10, mean of types": "macro/type/turn/ndcg@10",
    "nDCG@10, mean of conversations": "macro/corpus/turn/ndcg@10",
    "recall@10": "turn/recall@10",
    "MRR@10": "turn/mrr@10",
    "hit@1": "turn/recall_any@1",
}
"""Heading -> name in metrics.json."""

TURNS = ("nDCG@10, recall@10 (the share of the evidence), MRR@10 and hit@1 are means over questions (micro). The rows "
          "of MTEB's LMEB are means of question types (macro). Arms that rank units of different sizes cannot be "
          "compared here.")


def turn_metrics(comparison: Comparison) -> list[tuple[str, list[str]]]:
    """Return (arm, a cell for each of ``COLUMNS``) for the arms that rank turns; a missing figure is a dash."""
    ranks_turns = [(name, arm["metrics"]) for name, arm in comparison["arms"].items()
                   if COLUMNS["nDCG@10"] in arm["metrics"]]
    return [(name, [format_number(metrics[metric]["value"] if metric in metrics else None)
                    for metric in COLUMNS.values()]) for name, metrics in ranks_turns]


GAINS = ("Share of the gain in the loss of all splits, summed over the fits of the folds; the first 20 features. "
          "Features that say the same share their gain, so a small share is no proof that a feature could be left out.")


@dataclass(frozen=True)
class ImportanceTable:
    """Importances of arms with the same fits: (feature, its share of all gain, width of its bar in percent)."""

    arms: str
    rows: tuple[tuple[str, str, float], ...]


@dataclass(frozen=True)
class Reason:
    """Why one turn is ahead of another: (feature, its values in both, what it adds to the lead); what others add."""

    turns: tuple[int, int, int, int]
    rows: tuple[tuple[str, float | None, float | None, float], ...]
    others: float

    @property
    def lead(self) -> float:
        """Return the lead of the first turn, in the units of the fit's score."""
        return self.others + sum(row[-1] for row in self.rows)

    @property
    def words(self) -> str:
        """Return a sentence about the lead."""
        session, turn, other_session, other_turn = self.turns
        return (f"Learned fusion ranks session {session}, turn {turn} ahead of session {other_session}, turn "
                f"{other_turn}: lead {format_signed(self.lead)}")


def importance_tables(arms: Sequence[ArmRun]) -> list[ImportanceTable]:
    """Return the importances that manifests hold; arms with the same ones share a table."""
    names: dict[tuple[tuple[str, float], ...], list[str]] = {}
    for arm in arms:
        rows = tuple((one_line(row["feature"]), float(row["share"])) for row in arm.manifest["importances"])
        if rows:
            names.setdefault(rows, []).append(one_line(arm.name))
    return [ImportanceTable(", ".join(having), tuple(
        (name, f"{100 * share:.1f} %", round(100 * share / max(rows[0][1], 1e-9), 1)) for name, share in rows))
        for rows, having in names.items()]


def reasons(arm: ArmRun) -> dict[int, Reason]:
    """Return why the first turn of each question is ahead of the second; empty without learned fusion."""
    if arm.reasons is None:
        return {}
    turns: dict[int, tuple[int, int, int, int]] = {}
    rows: dict[int, list[tuple[str, float | None, float | None, float]]] = {}
    others: dict[int, float] = {}
    for question, *places, feature, value, other, contribution in arm.reasons.select(
            "question", "session", "turn", "other_session", "other_turn", "feature", "value", "other_value",
            "contribution").iter_rows():
        turns[question] = (places[0], places[1], places[2], places[3])
        if feature is None:
            others[question] = contribution
        else:
            rows.setdefault(question, []).append((one_line(feature), value, other, contribution))
    return {question: Reason(place, tuple(rows.get(question, ())), others.get(question, 0.0))
            for question, place in turns.items()}


def packed_reasons(arms: Sequence[ArmRun]) -> tuple[list[str], dict[int, dict[str, Any]]]:
    """Return the names of features, and for each question its distinct reasons and the number of each arm's own.

    A reason is [session, turn, other session, other turn, [number of the feature, value, other value, contribution]
    for each, contribution of all others]; an arm without one has null.
    """
    features: dict[str, int] = {}
    out: dict[int, dict[str, Any]] = {}
    for i, arm in enumerate(arms):
        for question, reason in reasons(arm).items():
            entry = out.setdefault(question, {"list": [], "which": [None] * len(arms)})
            rows = [[features.setdefault(name, len(features)), *(_short(value) for value in values)]
                    for name, *values in reason.rows]
            item = [*reason.turns, rows, _short(reason.others)]
            if item not in entry["list"]:
                entry["list"].append(item)
            entry["which"][i] = entry["list"].index(item)
    return list(features), out


def example(arms: Sequence[ArmRun]) -> tuple[str, str, Reason] | None:
    """Return (arm, question, reason) of the first question of the first arm that has reasons."""
    for arm in arms:
        if found := reasons(arm):
            first = min(found)
            texts = dict(arm.questions.select("question", "text").iter_rows())
            return arm.name, str(texts.get(first, "")), found[first]
    return None


def cells(reason: Reason) -> list[list[str]]:
    """Return the rows of a reason as text: feature, its value in the first turn, in the second, what it adds."""
    rows = [[name, format_number(value), format_number(other), format_signed(adds)]
            for name, value, other, adds in reason.rows]
    return [*rows, ["all others", "", "", format_signed(reason.others)]]


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
