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
from memlab.text.display import EMPTY, format_number, format_signed, is_number, one_line


@dataclass(frozen=True)
class PlainTable:
    """A table of texts: heads and rows, a remark below it, and the first column of numbers."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remark: str = ""
    numbers_from: int = 1


DECLINE = "no evidence: to decline"

WHY = ("Under the view any, evidence counts as shown when any piece of it is, under all only when all of it is. A "
       "cause is the first of these changes that turns the verdict: the same context read again, a second judge, the "
       "tables, gold before the rest, gold alone. The same was tried on a sample of right answers.")


def attribution_tables(arms: Sequence[ArmRun]) -> list[PlainTable]:
    """Tabulate how far evidence got, the causes, and those by type of question, of each arm with an attribution."""
    return [table for arm in arms if arm.attribution is not None for view in VIEWS
            for table in _attributed(f"{one_line(arm.name)}, {view} evidence", arm.attribution.filter(
                pl.col("view") == view).join(arm.questions.select("question", "category"), on="question", how="left"))]


def _attributed(heading: str, rows: pl.DataFrame) -> list[PlainTable]:
    counts = Counter((reached or DECLINE, right) for reached, right in rows.select("reached", "right").iter_rows())
    steps = tuple((step, str(counts[step, True]), str(counts[step, False])) for step in (*STEPS[::-1], DECLINE)
                  if counts[step, True] or counts[step, False])
    failed, passed = (rows.filter("sampled", pl.col("right") == right) for right in (False, True))
    wrong, right = Counter(failed["cause"]), Counter(passed["cause"])
    lost = sum(wrong[step] for step in STEPS)  # the basis of any rate of reasoning errors
    words = (f"{heading}: {lost} of {failed.height} wrong answers lack evidence, {failed.height - lost} do not."
             if failed.height else f"{heading}: no wrong answer was sampled.")
    tables = [
        PlainTable(f"{heading}: how far it got", ("evidence", "answered right", "wrong"), steps),
        PlainTable(f"{heading}: causes", ("cause", f"wrong answers, of {failed.height} sampled",
                                          f"right answers, of {passed.height} sampled"),
                   tuple((c, str(wrong[c]), str(right[c])) for c in CAUSES if wrong[c] or right[c]), words)]
    kinds = sorted(Counter(failed["category"].drop_nulls()).items())
    by_kind = Counter(failed.select("cause", "category").iter_rows())
    if len(kinds) > 1:
        tables.append(PlainTable(
            f"{heading}: wrong answers by question type",
            ("cause", *(f"{one_line(kind)} (n = {n})" for kind, n in kinds)),
            tuple((c, *(str(by_kind[c, kind]) for kind, _ in kinds)) for c in CAUSES if wrong[c])))
    return tables


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


CLASSES = ("The classes of query/classify against the benchmark's own types, which are gold. No class fits a type that "
           "is not a kind of question.")


def class_tables(arms: Sequence[ArmRun]) -> list[PlainTable]:
    """Tabulate the classes of each classifier; arms whose questions have the same classes share one table.

    A row has a type's count of each class, how many fit it (a dash where no class does), and n. Arms without classes,
    and questions without types, have none.
    """
    groups: dict[tuple[tuple[str, str, int], ...], list[ArmRun]] = {}
    for arm in arms:
        counts = confusion(arm.classes, arm.questions)
        if counts.height and not arm.classes.is_empty():
            groups.setdefault(tuple(counts.iter_rows()), []).append(arm)
    return [_class_table(group, whole=len(group) == len(arms)) for group in groups.values()]


def _class_table(group: Sequence[ArmRun], whole: bool) -> PlainTable:
    counts = confusion(group[0].classes, group[0].questions)
    names = tuple(name for name in VOCABULARY if name in set(counts["class"]))
    cells = {(kind, name): n for kind, name, n in counts.iter_rows()}
    rows = tuple((one_line(kind), *(str(cells.get((kind, name), 0)) for name in names),
                  EMPTY if fit is None else str(fit), str(n)) for kind, fit, n in right_by_type(counts).iter_rows())
    right, n = accuracy(counts)
    share = (f"{right:,} of {n:,} questions ({right / n:.0%}) have a class that fits their type" if n
             else "no type here has a class")
    having = "all arms" if whole else ", ".join(one_line(arm.name) for arm in group)
    return PlainTable(f"{one_line(slot_names(group[0]).get('classify', 'classes'))} ({having}): {share}",
                      ("type", *names, "fits", "n"), rows)


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


def turn_metrics(comparison: Comparison) -> list[PlainTable]:
    """Tabulate the figures of ``COLUMNS`` of the arms that rank turns; a missing figure is a dash.

    Arms with the same cells share a row, so that rules that select from one ranking do not fill a table.
    """
    rows: dict[tuple[str, ...], list[str]] = {}
    for name, arm in comparison["arms"].items():
        if COLUMNS["nDCG@10"] in arm["metrics"]:
            cells = (format_number(arm["metrics"][metric]["value"] if metric in arm["metrics"] else None)
                     for metric in COLUMNS.values())
            rows.setdefault(tuple(cells), []).append(name)
    every = len(comparison["arms"])
    body = tuple((f"all {every} arms" if len(names) == every > 1 else ", ".join(names), *cells)
                 for cells, names in rows.items())
    return [PlainTable("Turn metrics", ("arm", *COLUMNS), body)] if body else []


GAINS = ("Share of the gain in the loss of all splits, summed over the fits of the folds; the first 20 features. "
          "Features that say the same share their gain, so a small share is no proof that a feature could be left out.")


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


def importance_tables(arms: Sequence[ArmRun]) -> list[PlainTable]:
    """Tabulate the importances that manifests hold; arms with the same ones share a table."""
    names: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for arm in arms:
        rows = tuple((one_line(row["feature"]), f"{100 * row['share']:.1f} %") for row in arm.manifest["importances"])
        if rows:
            names.setdefault(rows, []).append(one_line(arm.name))
    return [PlainTable(", ".join(having), ("feature", "share of the gain"), rows) for rows, having in names.items()]


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


def example(arms: Sequence[ArmRun]) -> list[PlainTable]:
    """Tabulate why the first turn is first, for the first question of the first arm that has reasons."""
    for arm in arms:
        if found := reasons(arm):
            question, reason = min(found.items())
            texts = dict(arm.questions.select("question", "text").iter_rows())
            rows = tuple((name, format_number(value), format_number(other), format_signed(adds))
                         for name, value, other, adds in reason.rows)
            return [PlainTable(
                f"For one question of {one_line(arm.name)}, “{one_line(texts.get(question, ''))}”: {reason.words}",
                ("feature", "in the first turn", "in the second", "adds to the lead"),
                (*rows, ("all others", "", "", format_signed(reason.others))))]
    return []


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
