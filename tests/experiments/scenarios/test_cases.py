from __future__ import annotations

import polars as pl
import pytest
from scenarios.cases import CASES, Expect, RankedPiece, check, locate, outcomes, piece_places, with_lane_scores
from scenarios.dataset import Scenarios

from memlab.support.errors import MemlabError

pytestmark = pytest.mark.nightly


def unit(rank: int = 1, score: float = 0.7, selected: bool = True, cosine: float | None = 0.8,
         text: float | None = 0.5, session: int = 0, shown: str | None = None) -> RankedPiece:
    return RankedPiece(rank, score, selected, cosine, text, session, shown)


@pytest.mark.parametrize(("expect", "found", "met", "said"), [
    (Expect("rank", ("a",), 3), {"a": unit(3)}, True, "3"),
    (Expect("rank", ("a",), 3), {"a": unit(4)}, False, "4"),
    (Expect("score", ("a",), 0.8), {"a": unit(score=0.81)}, True, "0.810"),
    (Expect("score", ("a",), 0.8), {"a": unit(score=0.8)}, False, "0.800"),
    # .7 x .3 = .21 against .3 x .5 = .15; .7 x .2 = .14 against the same
    (Expect("vector", ("a",)), {"a": unit(cosine=0.3)}, True, "0.21 v 0.15"),
    (Expect("vector", ("a",)), {"a": unit(cosine=0.2)}, False, "0.14 v 0.15"),
    (Expect("text", ("a",), 0.4), {"a": unit(text=0.5)}, True, "0.500"),
    (Expect("text", ("a",), 0.5), {"a": unit(text=0.5)}, False, "0.500"),
    (Expect("near", ("a", "b"), 0.2), {"a": unit(score=0.7), "b": unit(2, 0.55)}, True, "0.150"),
    (Expect("near", ("a", "b"), 0.2), {"a": unit(score=0.7), "b": unit(2, 0.4)}, False, "0.300"),
    (Expect("before", ("a", "b")), {"a": unit(1), "b": unit(2)}, True, "1 < 2"),
    (Expect("before", ("a", "b")), {"a": unit(2), "b": unit(1)}, False, "2 > 1"),
    (Expect("before", ("a", "b")), {"a": unit(9), "b": None}, True, "alone"),
    (Expect("path", ("a", "b")), {"a": unit(session=4), "b": unit(2, session=4)}, True, "one file"),
    (Expect("path", ("a", "b")), {"a": unit(session=4), "b": unit(2, session=5)}, False, "two files"),
    (Expect("snippet", ("a",)), {"a": unit(shown="user: My cats sleep.")}, True, "1 marked"),
    (Expect("snippet", ("a",)), {"a": unit(shown="user: It rains.")}, False, "0 marked"),
    (Expect("snippet", ("a",)), {"a": unit(shown=None)}, None, "its text is not kept"),
    (Expect("returned", ("a", "b")), {"a": unit(), "b": unit(2)}, True, "2 of 2"),
    (Expect("returned", ("a", "b")), {"a": unit(), "b": unit(9, selected=False)}, False, "1 of 2"),
])
def test_every_expectation_can_be_met_and_missed(expect, found, met, said):
    assert check(expect, found, 5, question="Where is the cat?") == (met, said)


def test_nothing_is_nothing_and_what_no_lane_tells_is_not_judged():
    assert check(Expect("nothing"), {}, 0) == (True, "0 returned")
    assert check(Expect("nothing"), {}, 1) == (False, "1 returned")
    assert check(Expect("vector", ("a",)), {"a": unit(cosine=None)}, 5, False, True)[0] is None
    assert check(Expect("text", ("a",), 0.5), {"a": unit(text=None)}, 5, True, False)[0] is None
    assert check(Expect("rank", ("a",), 3), {"a": unit()}, 5, False, False)[0] is True


RANKING = pl.DataFrame({
    "question": [0, 0, 0, 1], "session": [4, 4, 2, 9], "turns": [[0, 1], [1, 2], [0], [0]], "rank": [1, 2, 3, 1],
    "score": [0.9, 0.8, 0.1, 0.5], "selected": [True, True, False, True], "dense:a": [0.4, None, 0.1, 0.2],
    "dense:b": [0.6, 0.5, None, None], "lexical:a": [2.0, 3.0, None, 1.0]})


def test_a_piece_is_found_in_its_best_unit_and_keyword_ranks_count_within_a_question():
    rows = with_lane_scores(RANKING)
    assert rows["cosine"].to_list() == [0.6, 0.5, 0.1, 0.2]
    assert rows["text"].to_list() == [1 / 3, 1 / 2, None, 1 / 2]
    first = rows.filter(question=0)
    assert locate(first, (4, 1)) == RankedPiece(1, 0.9, True, 0.6, 1 / 3, 4)
    assert locate(first, (4, 2)) == RankedPiece(2, 0.8, True, 0.5, 1 / 2, 4)
    assert locate(first, (4, 3)) is None
    assert with_lane_scores(RANKING.drop("dense:a", "dense:b", "lexical:a"))["text"].null_count() == 4


def perfect(tables, *, worst: bool = False) -> pl.DataFrame:
    """A ranking by someone who knows the answers: pieces in the order in which they are hoped for, or the reverse."""
    rows = []
    held = piece_places(tables["ids"])
    for name, question in tables["ids"].filter(kind="question").select("name", "question").iter_rows():
        wanted = [p for s in CASES[name].expect for p in s.pieces]
        order = sorted(held.get(name, {}), key=lambda piece: wanted.index(piece) if piece in wanted else 99)
        for rank, piece in enumerate(order[::-1] if worst else order, start=1 + 10 * worst):
            session, turn = held[name][piece]
            rows.append((question, session, [turn], rank, 0.1 / rank if worst else 0.95 - 0.01 * rank, not worst,
                         0.0 if worst else 0.9, 1.0 / rank))
        if worst:
            rows.append((question, 10_000, [0], 1, 0.9, True, 0.9, 99.0))
    return pl.DataFrame(rows, orient="row", schema={
        "question": pl.Int32, "session": pl.Int32, "turns": pl.List(pl.Int32), "rank": pl.Int32, "score": pl.Float64,
        "selected": pl.Boolean, "dense:turn": pl.Float64, "lexical:turn": pl.Float64})


@pytest.mark.parametrize("pool", [False, True])
def test_a_perfect_ranking_meets_all_but_gimlis_text_score_and_the_worst_meets_little(pool):
    tables = Scenarios(haystack=2, pool=pool).load()
    best = outcomes(perfect(tables), tables["ids"])
    assert len(best) == sum(len(s.expect) for s in CASES.values())
    assert {(o.category, o.expect.label) for o in best if not o.met} == {("technical-term", "text score > 0.5")}
    worst = outcomes(perfect(tables, worst=True), tables["ids"])
    assert {o.expect.kind for o in worst if o.met} == {"near"}


def test_a_case_that_is_no_longer_there_is_named():
    ids = Scenarios(types=["time"]).load()["ids"].with_columns(pl.col("name").str.replace("time:", "thyme:"))
    with pytest.raises(MemlabError, match="there is no scenario 'thyme:"):
        outcomes(RANKING, ids)
