"""BM25 against bm25s, which tokenises and indexes each corpus by itself."""

from __future__ import annotations

import bm25s
import numpy as np
import polars as pl
import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st

from memlab import preset
from memlab.pipeline.tables import Tables
from memlab.stages.search.bm25 import BM25, BM25Okapi
from memlab.store import Store
from tests.stages.search.world import day, world

WORDS = ["running", "runs", "cats", "cat", "the", "Blue", "sea", "a", "of", "walked", "walks", "2023", "x"]


def corpora(seed: int, sizes: tuple[int, ...] = (12, 30, 1, 5)) -> tuple[list[list[str]], list[str]]:
    rng = np.random.default_rng(seed)

    def text() -> str:
        return " ".join(rng.choice(WORDS, rng.integers(1, 15)))

    return [[text() for _ in range(n)] for n in sizes], [f"{text()} blue cats unheard" for _ in sizes]


def scores_by_corpus(lane: BM25 | BM25Okapi, texts: list[list[str]], asked: list[str]) -> list[list[float]]:
    """Return the scores of every corpus's memories, in the order in which they were written; 0 for no hit."""
    tables = world([(c, t, None) for c, some in enumerate(texts) for t in some],
                   [(c, q, None) for c, q in enumerate(asked)])
    scores = {row["memory"]: row["score"] for row in lane.run(tables, Store())["hits"].iter_rows(named=True)}
    memories = tables["memories"].sort("corpus", "memory", descending=[False, True])
    return [[scores.get(memory, 0.0) for memory in some["memory"]]
            for some in memories.partition_by("corpus", maintain_order=True)]


@pytest.mark.parametrize(("stop", "stemmer"), [("en", "english"), ("none", "none")])
def test_equals_bm25s(stop: str, stemmer: str) -> None:
    texts, asked = corpora(3)
    got = scores_by_corpus(BM25(stop_words=stop, stemmer=stemmer, k1=1.2, b=.6), texts, asked)
    stem = Stemmer.Stemmer("english") if stemmer == "english" else None
    words = None if stop == "none" else "en"
    for mine, some, query in zip(got, texts, asked):
        index = bm25s.BM25(method="lucene", k1=1.2, b=.6, dtype="float64")
        index.index(bm25s.tokenize(some, stopwords=words, stemmer=stem, show_progress=False), show_progress=False)
        tokens = bm25s.tokenize(query, stopwords=words, stemmer=stem, return_ids=False, show_progress=False)[0]
        assert mine == pytest.approx(index.get_scores(tokens).tolist(), abs=1e-6)


def test_zero_scores_are_no_hits_and_depth_cuts() -> None:
    tables = world([(0, "nothing", None), (0, "", None), (0, "cat", None), (0, "cat sea", None)],
                   [(0, "cats", day(0)), (0, "unheard", None)])
    hits = BM25().run(tables, Store())["hits"]
    assert hits.select("query", "memory", "rank").rows() == [(10, 1002, 1), (10, 1001, 2)]
    assert BM25(depth=1).run(tables, Store())["hits"]["memory"].to_list() == [1002]


@pytest.mark.parametrize("lane", [BM25Okapi(), BM25(unmatched=True)])
def test_every_memory_is_ranked_if_asked_for(lane: BM25 | BM25Okapi) -> None:
    tables = world([(0, "nothing", None), (0, "", None), (0, "cats", None), (0, "none", None)], [(0, "cats", day(0))])
    hits = lane.run(tables, Store())["hits"]
    assert hits["memory"].to_list() == [1002, 1001, 1003, 1004]
    assert hits["score"].to_list()[1:] == [0, 0, 0]


@pytest.mark.parametrize("question", ["", "the", "unheard"])
def test_a_query_without_known_words_scores_zero(question: str) -> None:
    assert scores_by_corpus(BM25(), [["cat", "sea"]], [question]) == [[0, 0]]
    assert scores_by_corpus(BM25(stop_words=["blue"]), [["blue sea", "sea"]], ["blue"]) == [[0, 0]]


def test_kinds_are_lanes() -> None:
    tables = world([(0, "cat", None, "turn"), (0, "cat sea", None, "session")], [(0, "cat", None)])
    hits = BM25(name="words").run(tables, Store())["hits"]
    assert sorted(hits["lane"]) == ["words:session", "words:turn"]
    assert hits["rank"].to_list() == [1, 1]
    assert BM25(kinds=["turn"]).run(tables, Store())["hits"]["memory"].to_list() == [1002]


@given(st.integers(0, 10**6), st.randoms())
def test_row_order_changes_nothing(seed: int, random: object) -> None:
    texts, asked = corpora(seed, (4, 7))
    tables = world([(c, t, None) for c, some in enumerate(texts) for t in some],
                   [(c, q, None) for c, q in enumerate(asked)])
    order = list(range(tables["memories"].height))
    random.shuffle(order)  # type: ignore[attr-defined]
    shuffled = tables.updated({"memories": tables["memories"][order], "texts": tables["texts"].reverse()})
    a, b = (sorted_hits(BM25(), t) for t in (tables, shuffled))
    assert a.equals(b)


def sorted_hits(lane: BM25, tables: Tables) -> pl.DataFrame:
    return lane.run(tables, Store())["hits"].sort("query", "lane", "rank")


def test_v1_reads_lower_case_words_of_two_letters_and_more_without_signs() -> None:
    lane = preset("search/lexical=bm25_v1").lexical
    tables = world([(0, "CAT!", None), (0, "dog-cat x", None), (0, "x y", None)], [(0, "x cat?", None)])
    hits = lane.run(tables, Store())["hits"].sort("rank")
    assert (hits["score"] > 0).to_list() == [True, True, False]
