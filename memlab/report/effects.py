"""Contrasts as small bars on common scales, and the statistical terms of a report in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memlab.report import units
from memlab.report.view_model import ContrastRow

TERMS = (
    ("difference", "The arm's mean less the comparator's, over the questions that define the metric in both. One point "
                   "is a hundredth: from 90.0 % to 91.0 %, or from 0.90 to 0.91."),
    ("95 % interval", "The differences that the data are compatible with. Where it excludes 0, chance alone is an "
                      "unlikely reason. It is not corrected for the number of contrasts."),
    ("p, uncorrected", "The chance of a difference at least this large if there were none, by one t-test over "
                       "independent groups of questions."),
    ("CR2", "How that test allows for questions of one group that go up and down together: the spread is that of the "
            "groups (cluster-robust, bias-reduced), and so are the degrees of freedom."),
    ("p, corrected", "p after Holm's correction over the declared contrasts: with several, some would pass by chance. "
                     "A contrast is shown where this p is at most .05. The verdict's p is corrected over all arms that "
                     "the best one is compared with, so it may be larger."),
    ("sign-flip p", "A check without the t-test's assumption: how often a difference as large appears when the sign of "
                    "each group's difference is drawn at random."),
    ("wins, losses, ties", "Questions on which the arm does better than the comparator, worse, and the same."),
    ("smallest detectable", "The true difference that 80 % of runs with these questions would show."),
    ("power", "The chance that this run had to show a true difference of the size planned for."),
)
"""(Term, what it means) of the columns of a contrast's figures."""


@dataclass(frozen=True)
class Bar:
    """The place of an interval in a strip 0 to 100 wide, with the place of zero; lengths in the same unit."""

    at: float
    low: float
    high: float
    zero: float


def bars(rows: Sequence[ContrastRow]) -> list[Bar | None]:
    """Place differences and intervals on common scales, which hold zero; None where there is no difference."""
    results = [row.result for row in rows]
    out: list[Bar | None] = []
    scales = {}
    for kind in (False, True):
        values = [0.0, *(value for c in results if units.is_cost(c["metric"]) == kind
                         for value in (c["difference"], c["low"], c["high"]) if value is not None)]
        pad = 0.04 * (max(values) - min(values)) or 1.0
        scales[kind] = min(values) - pad, max(values) + pad
    for c in results:
        low, high = scales[units.is_cost(c["metric"])]
        difference = c["difference"]
        if difference is None:
            out.append(None)
            continue
        ends = (difference if end is None else end for end in (c["low"], c["high"]))
        out.append(Bar(*(round(100 * (value - low) / (high - low), 2) for value in (difference, *ends, 0.0))))
    return out
