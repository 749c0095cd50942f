from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.data.numbering import draws
from memlab.errors import MemlabError
from memlab.rank import adaptive_k
from memlab.rank.adaptive_k import TokenMatchedK, mean_tokens
from memlab.rank.select import Fixed, Gap
from memlab.store import Store
from memlab.tables import Tables, empty, frame, text_hash
from tests.rank.rankings import ranking, shown

STORE = Store()


def world(seed: int, questions: int = 150, units: int = 45) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    scores = [np.sort(rng.normal(size=units))[::-1].tolist() for _ in range(questions)]
    return ranking(*scores, tokens=rng.integers(5, 60, questions * units).astype(float).tolist())


def cut(stage, table: pl.DataFrame) -> pl.DataFrame:
    return stage.run(Tables(ranking=table, questions=asked(table), turns=empty("turns")), STORE)["ranking"]


def asked(table: pl.DataFrame) -> pl.DataFrame:
    """A question of its own text for each number in a ranking."""
    numbers = table["question"].unique().sort()
    return frame("questions", {"question": numbers, "corpus": [0] * len(numbers),
                               "text_id": [text_hash(str(q)) for q in numbers]})


def drawn(table: pl.DataFrame, seed: int = 0) -> pl.DataFrame:
    return draws(asked(table), empty("turns"), seed)


def twin(table: pl.DataFrame, seed: int = 0) -> TokenMatchedK:
    return adaptive_k.token_matched_k(table, drawn(table, seed), seed)


def test_matched_shows_one_more_where_the_draw_falls_below_the_share() -> None:
    table = ranking(*[[3, 2, 1]] * 20)
    got = shown(cut(TokenMatchedK(k=1.5, seed=4), table))
    assert got == [[1, 2] if draw < .5 else [1] for draw in drawn(table, 4)["draw"]]
    assert 3 <= sum(len(g) == 2 for g in got) <= 17


def test_the_twin_of_a_constant_is_that_constant() -> None:
    table = cut(Fixed(k=7), world(1))
    assert cut(twin(table), table).equals(table)


@given(st.integers(0, 99), st.integers(0, 8), st.integers(2, 40))
def test_the_twin_costs_the_same_within_half_a_percent(seed, buffer, max_k) -> None:
    arm = cut(Gap(buffer=buffer, max_k=max_k), world(seed))
    match = twin(arm, seed)
    assert mean_tokens(cut(match, arm)) == pytest.approx(mean_tokens(arm), rel=.005)


def test_no_other_k_is_nearer_by_more_than_a_unit() -> None:
    arm = cut(Gap(), world(3, questions=12))
    wanted, best = mean_tokens(arm), abs(mean_tokens(cut(twin(arm), arm)) - mean_tokens(arm))
    tried = [abs(mean_tokens(cut(TokenMatchedK(k=k), arm)) - wanted) for k in np.linspace(0, 20, 400)]
    assert best <= min(tried) + 1e-9


def test_lists_that_end_early_count_what_they_have() -> None:
    table = ranking([2, 1], [3, 2, 1, 0], tokens=[10.0, 10.0, 10.0, 10.0, 10.0, 10.0])
    table = table.with_columns(selected=pl.lit(True))
    assert mean_tokens(table) == 30
    assert shown(cut(twin(table), table)) == [[1, 2], [1, 2, 3, 4]]


def test_nothing_ranked_has_no_twin() -> None:
    with pytest.raises(MemlabError, match="no token-matched twin"):
        twin(empty("ranking"))
