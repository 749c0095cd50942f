"""Weighted late interaction, recomputed by hand on a matcher whose matches are known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.pipeline.stage import spec
from memlab.pipeline.tables import Tables
from memlab.stages.search.late_index import LateIndex
from memlab.stages.search.late_interaction import WeightedLate, idf_weights
from memlab.store import Store
from tests.stages.search.late_worlds import FixedVectors, world
from tests.token_words import TokenWords

WORDS = ["the", "cat", "sat", "dog", "ran"]


EXACT = FixedVectors(WORDS, np.eye(len(WORDS), dtype=np.float32))
"""A word matches a passage with 1 where the passage holds it, else with 0."""


def scores(tables: Tables, tmp_path: Any, **fields: Any) -> dict[str, dict[int, float]]:
    hits = WeightedLate(matcher=EXACT, **fields).run(tables, Store(tmp_path))["hits"]
    found: dict[str, dict[int, float]] = {}
    for lane, memory, score in hits.select("lane", "memory", "score").iter_rows():
        found.setdefault(lane, {})[memory] = score
    return found


def test_rare_words_weigh_by_their_idf_among_visible_memories(tmp_path):
    tables = world([(0, "the cat", 1), (0, "the dog", 1), (1, "the sat", 2)], [("the cat", 28)])
    idf = np.log1p((3 - np.array([3.0, 1.0]) + 0.5) / (np.array([3.0, 1.0]) + 0.5))
    the, cat = idf / idf.sum()
    found = scores(tables, tmp_path)
    assert found["late:turn"] == pytest.approx({0: the + cat, 1: the, 2: the}, abs=1e-6)


def test_a_session_adds_the_best_answers_to_each_word_of_all_its_memories(tmp_path):
    tables = world([(0, "cat", 1), (0, "sat", 1), (1, "cat", 2), (1, "cat dog", 2)], [("cat sat", 28)])
    found = scores(tables, tmp_path, weighting="uniform")
    assert found["late:turn"] == pytest.approx({0: 0.5, 1: 0.5, 2: 0.5, 3: 0.5})
    assert found["late_session:turn"] == pytest.approx({0: 1.0, 1: 1.0, 2: 0.5, 3: 0.5})


def test_a_window_reaches_its_neighbours_and_no_further(tmp_path):
    tables = world([(0, "cat", 1), (0, "dog", 1), (0, "sat", 1)], [("cat sat", 28)])
    found = scores(tables, tmp_path, weighting="uniform", window=1, sessions=False)
    assert found["late_window:turn"] == pytest.approx({0: 0.5, 1: 1.0, 2: 0.5})
    assert set(scores(tables, tmp_path, window=0, sessions=False)) == {"late:turn"}


def test_a_later_day_is_neither_found_nor_counted(tmp_path):
    past = [(0, "the cat", 1), (1, "the dog", 2)]
    alone = scores(world(past, [("the cat", 3)]), tmp_path / "a")
    followed = scores(world([*past, (2, "cat cat ran", 4)], [("the cat", 3)]), tmp_path / "b")
    assert alone == followed


def test_of_a_long_question_the_first_tokens_count(tmp_path):
    found = scores(world([(0, "ran", 1), (0, "the", 1)], [("the cat sat dog ran", 28)]), tmp_path, weighting="uniform")
    assert found["late:turn"] == pytest.approx({0: 0.0, 1: 0.25})


@given(st.lists(st.integers(0, 50), min_size=1, max_size=12))
def test_weights_sum_to_one_and_fall_with_frequency(df: list[int]) -> None:
    weights = idf_weights(np.array(sorted(df), np.float64), 50)
    assert weights.sum() == pytest.approx(1, abs=1e-5)
    assert (np.diff(weights) <= 1e-7).all()


@dataclass(frozen=True)
class Wide(TokenWords):
    """A matcher that says how many numbers its vectors have."""

    width: int = 1024

    def token_width(self) -> int:
        return self.width


@pytest.mark.parametrize(("matcher", "kept"), [
    (Wide(width=384), "fp32"), (Wide(width=1024), "fp16"), (TokenWords(), "fp32")])
@pytest.mark.parametrize("kind", [WeightedLate, LateIndex])
def test_token_vectors_of_large_encoders_are_kept_in_half_the_bytes(kind: type[WeightedLate], matcher: TokenWords,
                                                                    kept: str, tmp_path: Path) -> None:
    late = kind(matcher=matcher)
    assert late.number_format() == kept
    assert kind(matcher=matcher, precision="int8").number_format() == "int8"
    tables, store = world([(0, "the cat sat", 1), (0, "the dog ran", 2)], [("cat", 28)]), Store(tmp_path)
    late.run(tables, store)
    missing = {precision: len(store.missing_tokens(matcher, tables["texts"][:2], "document", precision))
               for precision in ("fp32", "fp16")}
    assert missing == {"fp32": 0, "fp16": 2} if kept == "fp32" else {"fp32": 2, "fp16": 0}


def test_the_default_is_the_identity_of_what_it_stands_for() -> None:
    """Finished runs and kept indexes are found by it: those of MiniLM were made with precision fp32."""
    for matcher, kept in ((Wide(width=384), "fp32"), (Wide(width=1024), "fp16")):
        auto, stated = WeightedLate(matcher=matcher), WeightedLate(matcher=matcher, precision=kept)  # type: ignore[arg-type]
        assert spec(auto) == spec(stated) == {
            "is": "memlab.WeightedLate", "matcher": {"is": "TokenWords"}, "weighting": "idf", "window": 2,
            "sessions": True, "kinds": None, "depth": 1000, "precision": kept, "name": "late"}
