from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memlab.data.scenarios import CASES
from memlab.data.scenarios_gimli import GIMLI
from memlab.report.scenarios_formula import FLOOR, limits, needed, score

RANKS = st.one_of(st.none(), st.integers(1, 500))
COSINES = st.floats(-1, 1)


def test_every_target_of_the_eight_scenarios_is_worked_out():
    expected = {(s.category, e.words()) for s in GIMLI for e in s.expect}
    assert {(row.category, row.target) for row in limits()} == expected
    assert len(limits()) == len(expected)
    assert {row.category for row in limits()} <= {s.category for s in CASES.values()}
    verdicts = {(row.category, row.target): row.verdict for row in limits()}
    assert verdicts["technical-term", "text score > 0.5"] == "never"
    assert verdicts["temporal-disambiguation", "newer before older"] == "by chance"


def test_the_figures_in_words_by_hand():
    said = {(row.category, row.target): row.why for row in limits()}
    assert "ends at 0.85" in said["exact-match", "score > 0.8"]
    assert "0.929" in said["exact-match", "score > 0.8"]  # (.8 - .15) / .7
    assert "above 0.857" in said["semantic-equivalence", "score > 0.6"]  # .6 / .7
    assert "0.643" in said["semantic-equivalence", "score > 0.6"]  # (.6 - .15) / .7
    assert "0.286, 0.357 or, without a keyword, 0.500" in said["cross-chunk", "first and second returned"]
    assert "0.071" in said["cross-chunk", "scores within 0.2"]  # (.2 - .15) / .7


@given(COSINES, RANKS)
def test_no_score_escapes_the_limits(cosine, rank):
    assert score(cosine, rank) <= 0.85
    assert score(cosine, rank) <= 0.8 or (rank == 1 and cosine > 0.928) or cosine > 0.9999
    assert score(cosine, rank) <= 0.6 or 0.7 * cosine > 0.3 / 2
    assert score(0.0, rank) < FLOOR
    assert rank is None or 1 / (1 + rank) <= 0.5
    assert abs(score(needed(0.5, rank), rank) - 0.5) < 1e-9


@given(COSINES, COSINES, RANKS, RANKS)
def test_near_cosines_are_near_scores(one, other, first, second):
    if abs(one - other) < 0.0714:
        assert abs(score(one, first) - score(other, second)) < 0.2
