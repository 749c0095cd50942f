"""The questions on which the winner of a comparison and the arm nearest to it differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memlab.evaluate.compare import Comparison
from memlab.experiment.harness.results import ArmRun
from memlab.report import units
from memlab.report.opening import Opening
from memlab.support.text.display import is_number


@dataclass(frozen=True)
class ArmPair:
    """Two arms whose questions are set side by side, and the metric that they are compared by."""

    arm: str
    other: str
    metric: str


@dataclass(frozen=True)
class Differing:
    """A question on which two arms differ: its number, type, text, gold answer, and both values as text."""

    question: int
    kind: str
    text: str
    answer: str
    one: str
    two: str
    better: bool


def pair(comparison: Comparison, opening: Opening) -> ArmPair | None:
    """Return the winner, or else the first arm, and what it was compared with; None for an arm alone.

    Without these the two best are taken, and token-matched twins only where there is nothing else.
    """
    metric, arms = units.base(opening.metric or ""), comparison["arms"]
    having = [name for name in arms if metric in arms[name]["metrics"]]
    systems = sorted((name for name in having if not (arms[name]["oracle"] or arms[name]["tainted"])),
                     key=lambda name: (name.endswith(".twin"), -arms[name]["metrics"][metric]["value"]))
    first = opening.winner if opening.winner in having else next(iter([*systems, *having]), None)
    if first is None:
        return None
    candidates = [opening.comparator, *systems, *having]
    other = next((name for name in candidates if name in having and name != first), None)
    return None if other is None else ArmPair(first, other, metric)


def questions(arms: Sequence[ArmRun], chosen: ArmPair) -> list[Differing]:
    """Return the questions on which the pair differs, those first on which the first arm does better."""
    frames = {arm.name: arm.questions for arm in arms}
    one, two, metric = frames.get(chosen.arm), frames.get(chosen.other), chosen.metric
    if one is None or two is None or metric not in one.columns or metric not in two.columns:
        return []
    pairs = one.join(two.select("question", other=metric), on="question").sort("question")
    found = [Differing(row["question"], row["category"] or "", row["text"], row["answer"] or "",
                       units.write(metric, row[metric]), units.write(metric, row["other"]), row[metric] > row["other"])
             for row in pairs.iter_rows(named=True)
             if is_number(row[metric]) and is_number(row["other"]) and row[metric] != row["other"]]
    return sorted(found, key=lambda row: (not row.better, row.question))
