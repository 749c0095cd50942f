"""Words kept in a live memory: the figures of the batch, as-of counts, and nothing of a text that is forgotten."""

from __future__ import annotations

import io
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from memlab.memory.database import Database
from memlab.memory.memory import Memory, Session
from memlab.memory.store import LiveStore
from memlab.pipeline.stage import Stage
from memlab.pipeline.tables import text_hash
from memlab.stages.search import postings
from memlab.stages.search.bm25 import BM25, BM25Okapi
from memlab.stages.search.postings import CachedWords
from memlab.store import Store
from memlab.support.text.tokenize import split
from tests.examples import fewer
from tests.small import content_of, lexical
from tests.stages.search.world import day, world

TEXTS = ["cat cats sea", "the Blue sea", "running runs ran", "", "zebra \u00e9t\u00e9 \u00c9T\u00c9", "cat cat cat",
         "sea", "a b", "C++ \u4eac\u90fd \U0001f600"]
LANES = [BM25(k1=1.1, b=.6), BM25(stemmer="none", stop_words="none"),
         BM25(kinds=["turn"]), BM25(depth=2), BM25(pattern=r"\w+"), BM25(stemmer="french"),
         BM25Okapi()]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveStore]:
    database = Database(tmp_path_factory.mktemp("memory"))
    database.open()
    yield LiveStore(database)
    database.close()


@pytest.fixture
def store(opened: LiveStore) -> LiveStore:
    """A live memory's store, without texts."""
    forget_others(opened, [])
    return opened


def forget_others(store: LiveStore, texts: list[str]) -> None:
    store.keep(pl.Series("text_id", list(map(text_hash, texts)), pl.String))


memories_ = st.lists(st.tuples(st.sampled_from([0, 0, 0, 1]), st.sampled_from(TEXTS),
                               st.sampled_from([None, *map(day, range(4))]), st.just("turn") | st.just("session")),
                     min_size=1, max_size=12)
asked_ = st.sampled_from(["cats", "sea cat sea running", "the", "\u00e9t\u00e9"])
questions_ = st.lists(st.tuples(st.integers(0, 1), asked_, st.sampled_from([None, *map(day, range(-1, 4))])),
                      min_size=1, max_size=3)
steps_ = st.lists(st.tuples(memories_, questions_, st.booleans()), min_size=1, max_size=5)


@fewer(4)  # each example searches a memory again and again
@given(lane=st.sampled_from(LANES), steps=steps_, at_once=st.integers(1, 4))
def test_hits_are_those_of_the_batch_whatever_is_added_and_forgotten(opened: LiveStore, lane: Stage, steps: list,
                                                                     at_once: int) -> None:
    forget_others(opened, [])
    for memories, questions, forget in steps:
        some = [(0, "sea", None, "turn"), *memories]  # of the kind that some lane searches
        if forget:
            forget_others(opened, [text for _, text, *_ in some])
        tables = world(some, questions)
        for _ in range(2):  # the second time from postings that are there
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(postings, "AT_ONCE", at_once)
                hits = lane.run(tables, opened)["hits"]
            assert_frame_equal(hits, lane.run(tables, Store())["hits"], check_exact=True)


def test_document_frequencies_count_what_the_question_sees(store: LiveStore) -> None:
    """Two of the three texts are visible, and one of these has the word: ln(1 + 1.5/1.5) x 1 / (1 + 1.5)."""
    tables = world([(0, "cat sea", day(0)), (0, "sea sea", day(1)), (0, "cat cat", day(2))], [(0, "cat", day(1))])
    for _ in range(2):
        hits = BM25(stemmer="none").run(tables, store)["hits"]
        assert hits.select("memory", "score").rows() == [(1003, round(np.log(2) / 2.5, 6))]


def test_only_texts_that_are_new_are_tokenised() -> None:
    read: list[str] = []

    def tokenise(texts: pl.Series) -> pl.DataFrame:
        read.extend(texts)
        return split(texts)

    words = CachedWords(tokenise)
    first = world([(0, "cat", day(0)), (0, "sea", day(0))], [(0, "asked", None)])
    both = world([(0, "cat", day(0)), (0, "sea", day(0)), (0, "cat", day(1)), (0, "sun", day(1))], [(0, "asked", None)])
    words.of(first, None)
    assert sorted(read) == ["cat", "sea"]
    assert sorted(words.of(both, None)[0].columns) == ["cat", "sea", "sun"]
    assert sorted(read) == ["cat", "sea", "sun"]


def test_tokenisers_share_no_counts(store: LiveStore) -> None:
    tables = world([(0, "running the cats", None), (0, "cat", None), (0, "Cats runs", None)],
                   [(0, "cats the runs", None)])
    lanes = [BM25(), BM25(stemmer="none"), BM25(stop_words=["cats"]), BM25(pattern=r"\b\w"), BM25Okapi()]
    apart = [lane.run(tables, Store())["hits"] for lane in lanes]
    assert len({tuple(hits.rows()) for hits in apart}) == len(lanes)
    for lane, hits in zip([*lanes, *lanes], [*apart, *apart]):
        assert_frame_equal(lane.run(tables, store)["hits"], hits, check_exact=True)


def test_a_memory_keeps_no_word_that_was_forgotten(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(Session("2023-05-20", [("user", "My bank code is zebrafish."), ("user", "Blue sea")]))
        memory.search("zebrafish", "2023-06-01")
        assert b"zebrafish" in content(kept_of(memory))
        memory.forget(0, [0])
        assert b"zebrafish" not in content(kept_of(memory))
        assert memory.search("sea", "2023-06-01")["turns"].to_list() == [[1]]


class Unlocked(pickle.Pickler):
    """Writes an empty text in place of each lock."""

    def reducer_override(self, thing: object) -> object:
        return (str, ()) if isinstance(thing, type(threading.Lock())) else NotImplemented


def content(kept: list[CachedWords]) -> bytes:
    """Return all that is kept, without the locks."""
    buffer = io.BytesIO()
    Unlocked(buffer).dump(kept)
    return buffer.getvalue()


def kept_of(memory: Memory) -> list[CachedWords]:
    store = content_of(memory).store
    assert isinstance(store, LiveStore)
    return list(store._cached.values())
