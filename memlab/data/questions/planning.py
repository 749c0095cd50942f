"""Planning of further questions: the difference that a number of questions can show, and what a smaller one takes.

The power of one comparison with p < .05, by ``memlab.evaluate.statistics``, for questions that are right or wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import ceil

import numpy as np

from memlab.data.jsonl import QuestionLine
from memlab.evaluate.statistics import WANTED, Assumptions, planned_detectable, planned_power
from memlab.support.text.display import plural

ALPHA = 0.05

GOALS = (.5, .3, .2, .1, .05)
"""Differences that are named, from the largest."""

ENOUGH = .3
"""Difference from which a first comparison is worth its minutes; smaller ones take more questions."""

POINTS = "Points are of the share of questions with complete evidence."

MOST = 5000
"""Most further questions that are named."""

ASSUMPTION = (
    f"Planned for one comparison of two systems: p < {ALPHA:g}, found in {100 * WANTED:.0f} % of runs. Assumed: they "
    f"differ on {100 * Assumptions.discordance:.0f} % of the questions, or on as many as the difference if that is "
    "more, and further questions share no session of evidence with others.")


def sizes(questions: Sequence[QuestionLine]) -> tuple[int, ...]:
    """Return the sizes of the groups of questions that share sessions of evidence, directly or by others."""
    groups: list[tuple[set[tuple[str, str]], int]] = []  # sessions, number of questions
    for question in questions:
        if cited := {(question.corpus, one.session) for one in question.evidence}:
            joined = [group for group in groups if group[0] & cited]
            groups = [group for group in groups if not group[0] & cited]
            groups.append((cited.union(*(sessions for sessions, _ in joined)), 1 + sum(size for _, size in joined)))
    return tuple(sorted(size for _, size in groups))


@cache
def plan(sizes: tuple[int, ...]) -> str:
    """Return which difference these groups of questions can show, what smaller ones take, and what a point is.

    >>> plan((1,) * 12)
    'With 12 questions a difference of 45 points can be shown; 9 more for 30 points, 22 more for 20 points. Points are \
of the share of questions with complete evidence.'
    """
    n, least = sum(sizes), planned_detectable(np.array(sizes, np.float64), ALPHA)
    points = None if least is None else ceil(round(100 * least, 1))
    start = "With no question" if not n else f"With {plural(n, 'question')}"
    start += " no difference can be shown" if points is None else f" a difference of {points} points can be shown"
    start += ", enough for a first comparison" if points is not None and points <= 100 * ENOUGH else ""
    goals = [goal for goal in GOALS if points is None or 100 * goal < points][:2]
    more = [(needed, goal) for goal in goals if (needed := further(sizes, goal)) is not None]
    steps = ", ".join(f"{needed:,} more for {100 * goal:.0f} points" for needed, goal in more)
    return f"{start}; {steps}. {POINTS}" if steps else f"{start}. {POINTS}"


def further(sizes: tuple[int, ...], difference: float) -> int | None:
    """Return how many further questions, each a group of its own, make a difference detectable; None past ``MOST``."""
    for needed in range(MOST + 1):
        power = planned_power(np.array([*sizes, *[1] * needed], np.float64), difference, ALPHA)
        if power is not None and power >= WANTED:
            return needed
    return None
