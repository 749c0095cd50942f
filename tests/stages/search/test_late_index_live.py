"""An index of token vectors that a live memory extends, and that forgets with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from memlab.memory.memory import Memory, Session
from memlab.pipeline.pipeline import Pipeline
from memlab.stages.search.late_index import LateIndex
from memlab.stages.search.late_interaction import WeightedLate
from memlab.stages.search.token_lists import TokenLists
from tests.small import content_of
from tests.token_words import TokenWords

NOUNS = ["tea", "cat", "rain", "Tom", "garden", "piano", "ship", "lamp"]


def indexed() -> Pipeline:
    stage = LateIndex(matcher=TokenWords(), exact_below=0, centroids=16)  # type: ignore[arg-type]
    return Pipeline(late=stage)


def session(n: int) -> Session:
    rng = np.random.default_rng(n)
    day = f"2023-{1 + n % 12:02d}-{1 + n % 28:02d}"
    return Session(day, [("user", " ".join(rng.choice(NOUNS, 3)) + f" number{n}") for _ in range(2)], str(n))


def token_lists(memory: Memory) -> TokenLists:
    (lists,) = (kept for kept in content_of(memory).store._cached.values() if isinstance(kept, TokenLists))  # type: ignore[attr-defined]
    return lists


def test_after_additions_and_forgetting_it_ranks_as_exact_search(tmp_path: Path) -> None:
    with Memory(tmp_path / "a", indexed()) as some, Memory(
            tmp_path / "b", Pipeline(late=WeightedLate(matcher=TokenWords()))) as every:  # type: ignore[arg-type]
        for n in range(30):
            for memory in (some, every):
                memory.add(session(n))
                if n % 7 == 6:
                    memory.forget(str(n - 3))
            if n % 5 == 0:
                question = " ".join(np.random.default_rng(n).choice(NOUNS, 2))
                assert some.search(question, "2024-01-01").equals(every.search(question, "2024-01-01"))
