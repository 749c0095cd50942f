from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.learn.ranker.rescore import AWAY, SHARE, TRUST, leading_turns, mix


def z(values: list[float]) -> np.ndarray:
    return (np.array(values) - np.mean(values)) / np.std(values)


def test_the_first_session_is_that_of_the_largest_sum_and_its_best_turn_by_the_fit_leads() -> None:
    """Session 8 has the best turn by the fit, session 9 the largest sum; of 9 the fit prefers the last turn."""
    fit, weights, words = [3.0, 1.0, 0.0, 1.5], [0.0, 2.0, -1.0, -1.0], [-1.0, 1.0, 0.0, 0.0]
    frame = pl.DataFrame({"question": [4] * 4, "z linear": weights, "z lexical:session": words})
    session = np.array([8, 9, 8, 9])
    assert np.argmax(z(fit) + weights + SHARE * np.array(words)) == 1
    leads = leading_turns(frame, session, np.array(fit), home=False)
    assert leads is not None
    assert leads.tolist() == [False, False, False, True]
    assert np.argmax(TRUST[True] * z(fit) + weights + SHARE * np.array(words)) == 0
    at_home = leading_turns(frame.drop("z lexical:session"), session, np.array(fit))
    assert at_home is not None
    assert at_home.tolist() == [True, False, False, False]
    assert leading_turns(frame.select("question"), session, np.array(fit)) is None


def test_where_a_fit_is_not_at_home_the_weights_have_a_say() -> None:
    frame = pl.DataFrame({"question": [4] * 3 + [5], "z linear": [0.0, 2.0, -1.0, 3.0]})
    fit = np.array([3.0, 1.0, 0.0, 7.0])
    assert mix(frame, fit, home=True) is fit
    assert mix(frame, fit, home=False) == pytest.approx([*(z([3.0, 1.0, 0.0]) + AWAY * np.array([0, 2, -1])), 3 * AWAY])


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(-3, 3), st.integers(-3, 3)), min_size=1,
                max_size=20))
def test_each_question_has_one_leader_that_is_the_best_of_its_session(rows: list[tuple[int, int, int, int]]) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    frame = pl.DataFrame({"question": [q for q, *_ in rows], "z linear": [float(w) for *_, w in rows]})
    session, scores = np.array([s for _, s, *_ in rows]), np.array([float(f) for _, _, f, _ in rows])
    leads = leading_turns(frame, session, scores)
    assert leads is not None
    for question in {q for q, *_ in rows}:
        mine = [i for i, row in enumerate(rows) if row[0] == question]
        (leader,) = (i for i in mine if leads[i])
        own = [i for i in mine if session[i] == session[leader]]
        assert leader == min(i for i in own if scores[i] == scores[own].max())
