"""Planned differences: recomputed from the power of a test, and groups as a run forms them."""

from __future__ import annotations

import numpy as np

from memlab.data.jsonl import Evidence, QuestionLine
from memlab.data.questions.planning import further, plan, sizes
from memlab.evaluate.statistics import planned_power


def test_further_questions_are_the_fewest_with_the_power() -> None:
    needed = further((1,) * 12, .2)
    assert needed is not None
    enough, fewer = (planned_power(np.ones(12 + n), .2, .05) for n in (needed, needed - 1))
    assert enough is not None
    assert fewer is not None
    assert fewer < .8 <= enough
    assert further((1,) * 12, 1e-4) is None


def test_the_sentence_names_what_can_be_shown_and_what_it_takes() -> None:
    assert plan(()).startswith("With no question no difference can be shown; ")
    assert plan((1,)).startswith("With 1 question no difference can be shown; ")
    assert plan((1,) * 12) == ("With 12 questions a difference of 45 points can be shown; 9 more for 30 points, "
                               "22 more for 20 points. Points are of the share of questions with complete evidence.")
    assert plan((1,) * 21).startswith("With 21 questions a difference of 30 points can be shown, enough for a first "
                                      "comparison; ")
    assert "enough" not in plan((1,) * 20)


def test_questions_that_share_a_session_are_one_group() -> None:
    def line(name: str, session: str, turn: int | None = 0) -> QuestionLine:
        return QuestionLine(question=name, corpus="ann", text="Q?", evidence=[Evidence(session=session, turn=turn)])

    bare = QuestionLine(question="q9", corpus="ann", text="Q?")
    assert sizes([line("q1", "s1"), line("q2", "s1", 1), line("q3", "s2"), bare]) == (1, 2)
    assert sizes([]) == ()
