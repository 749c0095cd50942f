"""Planning of further questions: the difference that a number of questions can show, and what a smaller one takes.

The power of one comparison with p < .05, by ``memlab.evaluate.statistics``, for questions that are right or wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import ceil

import numpy as np

from memlab.data.benchmarks import Builder
from memlab.data.dataset import groups
from memlab.data.jsonl import QuestionLine
from memlab.evaluate.statistics import WANTED, Assumptions, planned_detectable, planned_power
from memlab.questions.log import Log
from memlab.text.display import plural

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


def sizes(log: Log, questions: Sequence[QuestionLine]) -> tuple[int, ...]:
    """Return the sizes of the groups of questions that depend on one another, as a run forms them."""
    marked = [question for question in questions if question.evidence]
    corpora = {name: n for n, name in enumerate(log.corpora)}
    build, added = Builder(), set[int]()
    for q, question in enumerate(marked):
        build.question(question=q, corpus=corpora[question.corpus], text=question.text, asked_on=None, name=str(q),
                       answer=None, category="all", abstain=False, scored=True)
        for session in dict.fromkeys(one.session for one in question.evidence):
            number = log.number(question.corpus, session)
            build.evidence(question=q, session=number, turn=None)
            if number not in added:
                added.add(number)
                for t, turn in enumerate(log.sessions[number].turns):
                    build.turn(corpus=corpora[question.corpus], session=number, turn=t, role=turn.role,
                               speaker=turn.speaker, text=turn.text, name=f"{number}:{t}")
    tables = build.tables()
    return tuple(groups(tables["questions"], tables["evidence"], tables["turns"]).group_by("group").len()["len"].sort())


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
