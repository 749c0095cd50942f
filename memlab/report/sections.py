"""Optional sections of a report: question types and classes, error attribution, turn metrics, learned rankings."""

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
from memlab.report import units
from memlab.report.arm_settings import slot_names
from memlab.text.display import format_number, format_signed, is_number, one_line


@dataclass(frozen=True)
class PlainTable:
    """A table of texts: heads and rows, a remark below it, and the first column of numbers."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remark: str = ""
    numbers_from: int = 1


DECLINE = "no evidence: to decline"
VIEW_MEANINGS = {"any": "evidence counts as shown when any piece of it is", "all": "only when all of it is"}


@dataclass(frozen=True)
class CauseTable:
    """An arm's causes under one view: (cause, wrong answers, right answers that turn) and the sizes of the samples.

    ``types`` are (question type, its wrong answers in the sample), ``by_type`` (cause, its wrong answers of each type);
    both are empty where the questions have one type or none.
    """

    arm: str
    view: str
    rows: tuple[tuple[str, int, int], ...]
    wrong: int
    right: int
    types: tuple[tuple[str, int], ...] = ()
    by_type: tuple[tuple[str, tuple[int, ...]], ...] = ()

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
        typed = arm.attribution.join(arm.questions.select("question", "category"), on="question", how="left")
        for view in VIEWS:
            sampled = typed.filter((pl.col("view") == view) & pl.col("sampled"))
            wrong, right = (Counter(sampled.filter(pl.col("right") == r)["cause"]) for r in (False, True))
            rows = tuple((c, wrong[c], right[c]) for c in CAUSES if wrong[c] or right[c])
            out.append(CauseTable(one_line(arm.name), view, rows, wrong.total(), right.total(),
                                  *_causes_by_type(sampled.filter(~pl.col("right")))))
    return out


def _causes_by_type(wrong: pl.DataFrame) -> tuple[tuple[tuple[str, int], ...], tuple[tuple[str, tuple[int, ...]], ...]]:
    """Return ``types`` and ``by_type`` of a ``CauseTable`` from the wrong answers of a sample."""
    sizes = Counter(wrong["category"].drop_nulls())
    if len(sizes) < 2:
        return (), ()
    counts = Counter(wrong.select("cause", "category").iter_rows())
    kinds = sorted(sizes)
    rows = tuple((cause, tuple(counts[cause, kind] for kind in kinds)) for cause in CAUSES)
    return tuple((one_line(kind), sizes[kind]) for kind in kinds), tuple(row for row in rows if any(row[1]))


@dataclass(frozen=True)
class ReachTable:
    """How far the evidence of an arm's questions got under one view: (step, questions answered right, wrong)."""

    arm: str
    view: str
    rows: tuple[tuple[str, int, int], ...]


def reached(arms: Sequence[ArmRun]) -> list[ReachTable]:
    """Count, for every arm with an attribution, the right and wrong answers by how far their evidence got."""
    out = []
    for arm in arms:
        if arm.attribution is None:
            continue
        for view in VIEWS:
            counts = Counter((reached or DECLINE, right) for reached, right in
                             arm.attribution.filter(pl.col("view") == view).select("reached", "right").iter_rows())
            rows = tuple((step, counts[step, True], counts[step, False]) for step in (*STEPS[::-1], DECLINE)
                         if counts[step, True] or counts[step, False])
            out.append(ReachTable(one_line(arm.name), view, rows))
    return out


def types(arms: Sequence[ArmRun]) -> list[tuple[str, int]]:
    """Return the question types with their numbers of scored questions, in alphabetical order."""
    sizes: dict[str, int] = {}
    for arm in arms:
        scored = arm.questions.filter(arm.questions["scored"]).group_by("category").len()
        for category, size in scored.iter_rows():
            if category is not None:
                sizes[category] = max(size, sizes.get(category, 0))
    return sorted(sizes.items())


def by_type(arms: Sequence[ArmRun], metric: str, categories: Sequence[str]) -> list[list[float | None]]:
    """Return the values of a metric, one row per arm and one column per type; None where undefined."""
    return [[value if is_number(value := arm.metrics.get(f"type={category}/{metric}")) else None
             for category in categories] for arm in arms]


SPAN = 0.2
"""Smallest range of a table's tints, so that a spread of a point or two does not look large."""


@dataclass(frozen=True)
class TypeTable:
    """A metric by question type: (type, its questions), and for each arm (text, tint 0 to 100 or None) of each type."""

    metric: str
    types: tuple[tuple[str, int], ...]
    rows: tuple[tuple[str, tuple[tuple[str, int | None], ...]], ...]


def type_tables(arms: Sequence[ArmRun], metrics: Sequence[str]) -> list[TypeTable]:
    """Tabulate each metric in which arms differ, and of an arm alone each metric, by question type."""
    kinds, out = types(arms), []
    for metric in metrics:
        table = by_type(arms, metric, [name for name, _ in kinds])
        values = [value for row in table for value in row if value is not None]
        if not values or len(arms) > 1 and all(row == table[0] for row in table):
            continue
        low, high = min(min(values), max(values) - SPAN), max(values)
        cells = (tuple((units.write(metric, v), None if v is None else round(100 * (v - low) / (high - low)))
                       for v in row) for row in table)
        out.append(TypeTable(metric, tuple(kinds), tuple(zip((arm.name for arm in arms), cells))))
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
    """Return (arm, a cell for each of ``COLUMNS``) for the arms that rank turns; a missing figure is a dash.

    Arms with the same cells share a row, so that rules that select from one ranking do not fill a table.
    """
    rows: dict[tuple[str, ...], list[str]] = {}
    for name, arm in comparison["arms"].items():
        if COLUMNS["nDCG@10"] in arm["metrics"]:
            cells = (format_number(arm["metrics"][metric]["value"] if metric in arm["metrics"] else None)
                     for metric in COLUMNS.values())
            rows.setdefault(tuple(cells), []).append(name)
    every = len(comparison["arms"])
    return [(f"all {every} arms" if len(names) == every > 1 else ", ".join(names), list(cells))
            for cells, names in rows.items()]


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
