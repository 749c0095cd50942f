from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.rank.rerank import MMR, greedy
from memlab.rank.units import memory_units, session_units, turn_units
from memlab.store import Store
from tests.rank.rankings import body, ranking, world


@dataclass(frozen=True)
class Told:
    """A text has the vector that it was given, else that of the last axis."""

    known: tuple[tuple[str, tuple[float, ...]], ...]

    def identity(self) -> dict[str, Any]:
        return {"is": "told", "known": self.known}

    def dim(self) -> int:
        return 3

    def encode(self, texts: Sequence[str], role: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        table = {t: np.array(v, np.float32) / np.linalg.norm(v) for t, v in self.known}
        yield np.arange(len(texts)), np.stack([table.get(t, np.eye(3, dtype=np.float32)[2]) for t in texts])

    def truncated(self, texts: Sequence[str], role: str) -> np.ndarray:
        return np.zeros(len(texts), bool)


def run(table: pl.DataFrame, known: dict[str, tuple[float, ...]], units=None, **more) -> pl.DataFrame:
    tables = world()
    stage = MMR(embedder=Told(tuple(known.items())), **more)
    tables = tables.updated({"ranking": table, "units": turn_units(tables["turns"]) if units is None else units})
    with tempfile.TemporaryDirectory() as folder:
        return stage.run(tables.only(stage.reads), Store(Path(folder)))["ranking"]


TWINS = {f"Ann: {body(0, 0, 0)}": (1, 0, 0), f"Ann: {body(0, 0, 1)}": (1, 0, 0), f"Ann: {body(0, 1, 0)}": (3, 4, 0)}


def test_what_was_said_before_comes_later() -> None:
    got = run(ranking([1.0, .9, .6]), TWINS, balance=.5, normaliser="none")
    # after unit 0: unit 1 .45 - .5 x 1, unit 2 .3 - .5 x .6 = 0
    assert got["unit"].to_list() == [0, 2, 1]
    assert got["score"].to_list() == pytest.approx([.5, 0, -.05])
    assert run(ranking([1.0, .9, .6]), TWINS, balance=1.0)["unit"].to_list() == [0, 1, 2]


def test_only_the_pool_is_reordered() -> None:
    got = run(ranking([1.0, .9, .6, .2, .1]), TWINS, balance=.5, normaliser="none", pool=3)
    assert got["unit"].to_list() == [0, 2, 1, 3, 4]
    assert got["score"].to_list()[3:] == pytest.approx([-.050001, -.150001])


def test_an_opposite_is_no_better_than_what_is_unlike() -> None:
    opposite = {f"Ann: {body(0, 0, 0)}": (1, 0, 0), f"Ann: {body(0, 0, 1)}": (-1, 0, 0)}
    assert run(ranking([1.0, .5, .5]), opposite, normaliser="none")["score"].to_list() == pytest.approx([.7, .35, .35])


def test_memories_are_read_by_their_key_and_sessions_by_the_mean_of_their_turns() -> None:
    table = ranking([1.0, .9, .6]).with_columns(unit=pl.Series([100, 101, 102], dtype=pl.Int64))
    keys = {body(0, 0, 0): (1, 0, 0), body(0, 1, 0): (1, 0, 0)}
    assert run(table, keys, memory_units(world()["memories"]), balance=.5)["unit"].to_list() == [100, 102, 101]
    sessions = session_units(world()["sessions"], world()["turns"])
    turns = {f"Ann: {body(0, 0, 0)}": (1, 0, 0), f"Ann: {body(0, 0, 1)}": (0, 1, 0), f"Ann: {body(0, 1, 0)}": (1, 0, 0),
             f"Ann: {body(0, 1, 1)}": (0, 1, 0), f"Ann: {body(0, 1, 2)}": (0, 0, 1)}
    got = run(ranking([1.0, .9, .6]), turns, sessions, balance=.5, normaliser="none")
    likeness = 2 / np.sqrt(2) / np.sqrt(3)  # of (1, 1, 0) and (1, 1, 1)
    assert got["unit"].to_list() == [0, 2, 1]
    assert got.filter(unit=1)["score"].item() == pytest.approx(.45 - .5 * likeness, abs=1e-6)


def test_questions_are_reordered_apart_and_nothing_is_nothing() -> None:
    got = run(ranking([1.0, .9, .6], [1.0]), TWINS, balance=.5)
    assert got["question"].to_list() == [0, 0, 0, 1]
    assert run(ranking([1.0]).clear(), TWINS).is_empty()


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=8),
       st.sampled_from([0.0, .3, .7, 1.0]), st.randoms(use_true_random=False))
def test_values_never_rise_and_do_not_depend_on_the_order_of_rows(parts, balance: float, random) -> None:
    scores = np.array([s / 8 for s, _, _ in parts])
    vectors = np.array([[a, b] if a or b else [1, 0] for _, a, b in parts], np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    units = np.arange(len(parts))
    values = greedy(scores, vectors, units, balance)
    by_hand, left, chosen = [], list(units), list[int]()
    while left:
        def worth(i: int) -> float:
            near = max([0.0, *(float(vectors[i] @ vectors[j]) for j in chosen)])  # noqa: B023
            return round(balance * scores[i] - (1 - balance) * near, 6)
        best = min(left, key=lambda i: (-round(worth(i), 5), i))
        by_hand.append(worth(best))
        chosen.append(best)
        left.remove(best)
    assert sorted(values, reverse=True) == pytest.approx(by_hand, abs=2e-5)
    rows = list(units)
    random.shuffle(rows)
    assert greedy(scores[rows], vectors[rows], units[rows], balance) == pytest.approx(values[rows], abs=2e-6)
