"""Cosine search, one lane a kind."""

from __future__ import annotations

import polars as pl
import pytest

from memlab.stages.search.dense import Dense
from memlab.store import Store
from tests.stages.search.world import WordEmbedder, day, world

MODEL = WordEmbedder()
TEXTS = {"turn": ["tea in a cup", "a blue sea", "tea", "the car", "tea"], "session": ["the car", "tea", "a red cup"]}
MEMORIES = [(c, text, day(d), kind) for c in (0, 1) for kind, texts in TEXTS.items()
            for d, text in enumerate(texts[c:])]
QUESTIONS = [(0, "a cup", day(2)), (1, "blue tea", None), (1, "a cup", day(9))]


def test_scores_are_cosines_and_lanes_are_kinds() -> None:
    tables = world(MEMORIES, QUESTIONS)
    hits = Dense(embedder=MODEL).run(tables, Store())["hits"]
    assert set(hits["lane"]) == {"dense:turn", "dense:session"}
    said = {1000 + len(MEMORIES) - i: m for i, m in enumerate(MEMORIES)}
    for hit in hits.to_dicts():
        asked = QUESTIONS[hit["query"] - 10]
        cosine = float(MODEL.vector(asked[1]) @ MODEL.vector(said[hit["memory"]][1]))
        assert hit["score"] == pytest.approx(cosine, abs=2e-6)
    for _, lane in hits.group_by("query", "lane"):
        order = lane.sort("score", "memory", descending=[True, False])
        assert order["rank"].to_list() == list(range(1, lane.height + 1))


def test_equal_texts_tie_by_memory_id_and_depth_cuts() -> None:
    tables = world([(0, "tea", day(i)) for i in range(6)], [(0, "tea", None)])
    hits = Dense(embedder=MODEL, depth=4, name="d").run(tables, Store())["hits"]
    assert hits["memory"].to_list() == [1001, 1002, 1003, 1004]
    assert hits["lane"].unique().to_list() == ["d:turn"]


@pytest.mark.parametrize(("memories", "questions"), [([], QUESTIONS), (MEMORIES, []), ([], []),
                                                     ([(5, "tea", None)], QUESTIONS),
                                                     ([(0, "tea", day(9))], [(0, "tea", day(1))])])
def test_nothing_to_see_gives_no_hits(memories: list, questions: list) -> None:
    assert Dense(embedder=MODEL).run(world(memories, questions), Store())["hits"].height == 0


def test_vectors_beyond_memory_stay_in_the_store_and_give_the_same_hits(monkeypatch: pytest.MonkeyPatch) -> None:
    tables, store = world(MEMORIES, QUESTIONS), Store()
    held = Dense(embedder=MODEL).run(tables, store)["hits"]
    made = dict(store.made)
    asked: list[str] = []
    rows = Store.stored_vectors
    monkeypatch.setattr("memlab.store.store.IN_MEMORY", 0)
    monkeypatch.setattr(Store, "stored_vectors", lambda self, *a: asked.append(a[2]) or rows(self, *a))
    assert Dense(embedder=MODEL).run(tables, store)["hits"].equals(held)
    assert sorted(asked) == ["document", "query"]
    assert dict(store.made) == made  # nothing is encoded again


def test_below_the_floor_is_no_hit() -> None:
    tables = world(MEMORIES, QUESTIONS)
    free = Dense(embedder=MODEL).run(tables, Store())["hits"]
    edge = free["score"].sort()[free.height // 2]
    floored = Dense(embedder=MODEL, floor=edge).run(tables, Store())["hits"]
    assert floored.equals(free.filter(pl.col("score") >= edge))
    assert 0 < floored.height < free.height
    assert Dense(embedder=MODEL, floor=1.0).run(world(MEMORIES, [(0, "unheard of", None)]), Store())["hits"].is_empty()
