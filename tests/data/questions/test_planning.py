"""Planned differences: recomputed from the power of a test, and groups as a run forms them."""

from __future__ import annotations

import numpy as np

from memlab.data.jsonl import Evidence, QuestionLine
from memlab.data.questions.planning import further, plan, sizes
from memlab.evaluate.statistics import planned_power


def test_further_questions_are_the_fewest_with_the_power() -> None:
    needed = further((1,) * 12, .2) or 0
    power = [planned_power(np.ones(12 + n), .2, .05) or 0 for n in (needed - 1, needed)]
    assert power[0] < .8 <= power[1]
    assert further((1,) * 12, 1e-4) is None


def test_the_sentence_names_what_can_be_shown_and_whether_it_is_enough() -> None:
    assert plan((1,)).startswith("With 1 question no difference can be shown; ")
    assert [", enough for a first comparison; " in plan((1,) * n) for n in (20, 21)] == [False, True]


def test_questions_that_share_a_session_are_one_group() -> None:
    lines = [QuestionLine(question=f"q{n}", corpus="ann", text="Q?", evidence=[Evidence(session=name, turn=n)])
             for n, name in enumerate(("s1", "s1", "s2"))]
    assert sizes([*lines, QuestionLine(question="q9", corpus="ann", text="Q?")]) == (1, 2)
