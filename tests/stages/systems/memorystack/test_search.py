"""The filter of sources before the search."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from memlab.pipeline.stage import Stage
from memlab.pipeline.tables import Tables, frame
from memlab.stages.search.bm25 import BM25
from memlab.stages.search.dense import Dense
from memlab.stages.systems.memorystack.search import BySource
from memlab.store import Store
from tests.stages.search.world import WordEmbedder, world

SEARCHES = [Dense(embedder=WordEmbedder(), depth=2), BM25(depth=2)]
SAID = [("user", "the blue boat"), ("assistant", "a boat of steel, old and red"), ("user", "my boat, my boat"),
        ("assistant", "boat tips: sails and oil"), ("user", "boat"), ("assistant", "rain")]


def asked(*classes: str | None) -> Tables:
    """One question of each class, and what both have said."""
    tables = world([(0, text, None) for _, text in SAID], [(0, "Which boat?", None) for _ in classes])
    sources = pl.Series("source", [source for source, _ in SAID])
    return tables.updated({"memories": tables["memories"].with_columns(sources), "classes": frame("classes", {
        "question": [n for n, one in enumerate(classes) if one], "class": [one for one in classes if one]})})


@pytest.mark.parametrize("search", SEARCHES, ids=["dense", "lexical"])
def test_a_question_about_the_assistant_searches_its_words_alone(search: Stage, tmp_path: Path) -> None:
    tables, store = asked("assistant", "factual"), Store(tmp_path)
    stage = BySource(search=search)
    hits = stage.run(tables.only(stage.reads), store)["hits"]
    of_assistant = tables.updated({"memories": tables["memories"].filter(source="assistant")})
    alone = search.run(of_assistant.only(search.reads), store)["hits"]
    assert_frame_equal(hits.filter(query=10), alone.filter(query=10))
    whole = search.run(tables.only(search.reads), store)["hits"]
    assert_frame_equal(hits.filter(query=11), whole.filter(query=11))
    sources = dict(tables["memories"].select("memory", "source").iter_rows())
    assert [sources[memory] for memory in hits.filter(query=10)["memory"]] == ["assistant", "assistant"]
    assert "user" in {sources[memory] for memory in whole.filter(query=10)["memory"]}  # a filter behind it leaves fewer
