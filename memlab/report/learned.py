"""Learned rankings in the report: the importances of features, and why each question's first turn is ahead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memlab.harness.results import ArmRun
from memlab.text.display import format_number, format_signed, one_line

LEGEND = ("Share of the gain in the loss of all splits, summed over the fits of the folds; the first 20 features. "
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
