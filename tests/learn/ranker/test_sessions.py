from __future__ import annotations

import dataclasses
from random import Random

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memlab.learn.ranker.sessions import (
    BEST,
    SHRINKAGE,
    START,
    SessionModel,
    behind_table,
    fit_sessions,
    lead,
    session_places,
    session_table,
    session_values,
)
from memlab.support.errors import MemlabError
from tests.learn.ranker.test_words import terms


def rows(*turns: tuple[int, float, int | None]) -> pl.DataFrame:
    """One question's turns (session, score, place of the session), units in this order."""
    return pl.DataFrame([(7, unit, *turn) for unit, turn in enumerate(turns)], orient="row",
                        schema={"question": pl.Int32, "unit": pl.Int64, "session": pl.Int64, "score": pl.Float64,
                                "place": pl.Int64})


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.sampled_from([-1.0, 0.0, 0.5, 2.0])), min_size=1,
                max_size=14), st.randoms(use_true_random=False))
def test_each_session_is_that_of_its_own_turns(turns: list[tuple[int, int, float]], random: Random) -> None:
    frame = pl.DataFrame({"question": [q for q, *_ in turns], "z a": [random.random() for _ in turns]})
    table = session_table(frame, np.array([session for _, session, _ in turns]), np.array([v for *_, v in turns]))
    learned = []
    for q, _, score in turns:
        of_question = [v for other, _, v in turns if other == q]
        learned.append((score - np.mean(of_question)) / np.std(of_question) if np.std(of_question) > 1e-9 else 0.0)
    keys = list(dict.fromkeys(turn[:2] for turn in turns))  # in the order of the rows
    assert table.select("question", "session").rows() == keys
    for key, row in zip(keys, table.iter_rows(named=True)):
        own = sorted(((learned[i], -i) for i, turn in enumerate(turns) if turn[:2] == key), reverse=True)
        best = [z for z, _ in own]
        assert learned[row[BEST]] == pytest.approx(best[0])
        assert row["best learned"] == pytest.approx(best[0])
        assert row["second learned"] == pytest.approx(best[min(1, len(best) - 1)])
        assert row["three learned"] == pytest.approx(sum(max(z, 0) for z in best[:3]))
        assert row["best z a"] == max(frame["z a"][-i] for _, i in own)
        equal = [i for i, turn in enumerate(turns) if turn[:2] == key and turns[row[BEST]][2] == turn[2]]
        assert row[BEST] == equal[0]


def test_places_are_by_value_and_then_by_the_best_turn() -> None:
    made = pl.DataFrame({"question": [1, 1, 2, 1, 1], "session": [0, 1, 0, 2, 3], BEST: [0, 4, 0, 2, 3],
                         "best learned": [1.0, 0.0, 0.0, 1.0, 3.0], "a": [5.0, 9.0, 0.0, 5.0, 5.0]})
    model = SessionModel(features=("a",), mean=(1.0,), scale=(2.0,), weights=(1.0,))
    assert session_places(model, made).tolist() == [2, 0, 0, 3, 1]


def test_sessions_behind_the_first_are_told_apart_by_their_likeness_to_it() -> None:
    """Sessions 0 to 3 of one question with one turn each; session 2 is first. Six words weigh ln 2 to ln 5."""
    made = pl.DataFrame({"question": [1] * 4, "session": [0, 1, 2, 3], BEST: [0, 1, 2, 3],
                         "best learned": [3.0, 2.0, 1.0, 0.0], "second learned": [1.0, 2.0, 1.0, 0.0],
                         "best z a": [0.0] * 4})
    words = terms("tea", "red tea", "green tea red", "cup")
    behind = behind_table(made, np.array([1, 2, 0, 3]), 1, words)
    assert behind.columns == ["question", "session", BEST, "best learned", "second learned", "likeness"]
    assert behind.drop("likeness").rows() == [(1, 0, 0, 3.0, 1.0), (1, 1, 1, 2.0, 2.0), (1, 3, 3, 0.0, 0.0)]
    tea, red, green = np.log1p(4 / 3), np.log1p(4 / 2), np.log1p(4 / 1)
    like = np.array([tea, tea + red, 0]) / (tea + red + green)
    assert behind["likeness"].to_list() == pytest.approx(((like - like.mean()) / like.std()).tolist())
    two = behind_table(made, np.array([1, 2, 0, 3]), 2, words)
    assert two["session"].to_list() == [1, 3]
    assert two["likeness"].to_list() == pytest.approx([1.0, -1.0])
    assert behind_table(made, np.array([1, 2, 0, 3]), 3, words)["likeness"].to_list() == [0.0]


def table(seed: int, questions: int = 40) -> tuple[pl.DataFrame, np.ndarray]:
    """Six sessions per question; two hold evidence, those with the highest "best z a"; "best learned" is noise."""
    rng = np.random.default_rng(seed)
    made = pl.DataFrame({"question": np.repeat(np.arange(questions), 6), "session": np.tile(np.arange(6), questions),
                         "best learned": rng.normal(size=6 * questions), "best z a": rng.normal(size=6 * questions)})
    best = pl.col("best z a").rank("ordinal", descending=True).over("question") <= 2
    return made, made.select(best).to_series().to_numpy()


def test_a_small_data_set_counts_as_much_as_a_large_one() -> None:
    (small, small_held), (large, large_held) = table(3, 5), table(4, 10)
    large = large.with_columns(pl.col("question") + 100, pl.col("best z a") * -1)
    dataset = np.repeat(np.array([0, 1], np.int32), [small.height, large.height])
    both = fit_sessions(pl.concat([small, large]), np.concatenate([small_held, large_held]), dataset)
    plain = fit_sessions(pl.concat([small, large]), np.concatenate([small_held, large_held]))
    assert abs(both.weights[1]) < abs(plain.weights[1])
    assert np.sign(plain.weights[1]) == -1
    one = fit_sessions(small, small_held)
    assert fit_sessions(small, small_held, np.full(small.height, 4, np.int32)) == one


def test_the_weights_are_at_the_least_loss() -> None:
    made, held = table(3, 8)
    model = fit_sessions(made, held)
    x = (made.select(model.features).to_numpy() - np.array(model.mean)) / np.array(model.scale)

    def loss(weights: np.ndarray) -> float:
        total = 0.0
        for question in range(8):
            mine = made["question"].to_numpy() == question
            e = np.exp(x[mine] @ weights)
            others = e[~held[mine]].sum()
            total -= np.mean(np.log(e[held[mine]] / (e[held[mine]] + others)))
        return total + SHRINKAGE / 2 * float(((weights - np.array([START, 0.0])) ** 2).sum())

    at = loss(np.array(model.weights))
    for step in ((1e-2, 0), (-1e-2, 0), (0, 1e-2), (0, -1e-2)):
        assert loss(np.array(model.weights) + step) > at


def test_without_evidence_the_best_learned_turn_decides() -> None:
    made, held = table(0)
    model = fit_sessions(made, np.zeros_like(held))
    assert model.weights == pytest.approx((START, 0.0))
    by_value = session_values(model, made).sort("question", "value")["session"]
    assert by_value.equals(made.sort("question", "best learned")["session"])


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30)), min_size=1, max_size=25), st.integers(0, 6),
       st.permutations(range(5)))
def test_the_best_sessions_are_first_and_nothing_is_lost(turns: list[tuple[int, int]], places: int,
                                                         values: list[int]) -> None:
    ordered = sorted({session for session, _ in turns}, key=lambda session: -values[session])
    place = {session: at if at < places else None for at, session in enumerate(ordered)}
    before = rows(*((session, float(score), place[session]) for session, score in turns))
    after = lead(before)
    assert sorted(after["score"]) == sorted(before["score"])
    assert after.select("unit", "session").sort("unit").equals(before.select("unit", "session"))
    sessions = after["session"].unique(maintain_order=True).to_list()
    wanted = sorted(set(sessions), key=lambda session: -values[session])
    assert sessions[:places] == wanted[:places]
    old = before.sort("score", "unit", descending=[True, False])["session"].unique(maintain_order=True).to_list()
    assert sessions[places:] == [session for session in old if session not in wanted[:places]]
    for session in set(sessions):  # the best turn of a session leads it
        first = after.filter(pl.col("session") == session)["unit"][0]
        assert first == before.filter(pl.col("session") == session).sort("score", "unit", descending=[True, False])[
            "unit"][0]


def test_a_missing_signal_and_impossible_numbers_are_named() -> None:
    model = fit_sessions(*table(0))
    with pytest.raises(MemlabError, match="'best z a'"):
        session_values(model, table(0)[0].drop("best z a"))
    for wrong in ({"weights": (1.0,)}, {"scale": (1.0, 0.0)}, {"mean": (1.0, float("nan"))}):
        with pytest.raises(ValidationError):
            SessionModel(**{**dataclasses.asdict(model), **wrong})
