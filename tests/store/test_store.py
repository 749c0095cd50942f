"""The store: what comes out equals what the model says, whatever happens in between."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.models.protocols import Floats, Ints, Role
from memlab.pipeline.tables import texts_frame
from memlab.store import Store
from memlab.store.index import SegmentIndex
from memlab.store.segment import key_columns, read
from memlab.support.errors import MemlabError
from tests.store import worker as store_worker
from tests.store.worker import DIM, DigestEmbedder, digest_vector, expected, some_texts


class DigestScorer:
    """A deterministic scorer of pairs that remembers its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[str], list[str], Ints]] = []

    def identity(self) -> dict[str, Any]:
        return {"model": "digest-pairs"}

    def score(self, queries: Sequence[str], passages: Sequence[str], pairs: Ints) -> Iterator[tuple[Ints, Floats]]:
        self.calls.append((list(queries), list(passages), pairs))
        for start in range(0, len(pairs), 7):
            block = pairs[start : start + 7]
            yield (np.arange(start, start + len(block)),
                   np.array([digest_vector(queries[q] + "|" + passages[p])[0] for q, p in block], np.float32))


def segments(root: Path) -> list[Path]:
    return sorted(root.glob("*/*/*.segment"))


class Unasked(DigestEmbedder):
    """What nobody may ask anything, since all of it is stored."""

    def dim(self) -> int:
        raise AssertionError("asked for its width")

    def truncated(self, texts: Sequence[str], role: Role) -> np.ndarray:
        raise AssertionError("asked what it cuts")


def test_width_and_truncation_are_told_by_the_store(tmp_path: Path) -> None:
    class Cuts(DigestEmbedder):
        def truncated(self, texts: Sequence[str], role: Role) -> np.ndarray:
            self.asked += texts
            return np.array([len(text) % 3 == 0 for text in texts])

    texts, embedder, store = some_texts(30), Cuts(), Store(tmp_path)
    assert store.dim(embedder, "document") == DIM
    cut = store.truncated(embedder, texts[:20], "document")
    assert cut.dtype == bool
    assert cut.tolist() == [len(text) % 3 == 0 for text in texts["text"][:20]]
    assert 0 < cut.sum() < 20
    store.truncated(embedder, texts, "document")
    assert len(embedder.asked) == 30  # the last ten alone
    store.vectors(embedder, texts, "document")
    warm = Store(tmp_path)
    assert warm.dim(Unasked(), "document") == DIM
    assert warm.vectors(Unasked(), texts, "document").shape == (30, DIM)
    np.testing.assert_array_equal(warm.truncated(Unasked(), texts[:20], "document"), cut)
    with pytest.raises(AssertionError):
        warm.dim(Unasked(), "query")


def test_roles_and_models_do_not_mix(tmp_path: Path) -> None:
    store, texts = Store(tmp_path), some_texts(5)
    store.vectors(DigestEmbedder("a"), texts, "document")
    np.testing.assert_array_equal(store.vectors(DigestEmbedder("a"), texts, "query"), expected(texts, "query"))
    assert store.missing(DigestEmbedder("b"), texts, "document") == 5
    assert store.missing(DigestEmbedder("a"), texts, "document") == 0


@given(calls=st.lists(st.lists(st.integers(0, 30), max_size=40), min_size=1, max_size=4),
       flush_mb=st.sampled_from([0.0, 64.0]))
def test_any_sequence_of_calls(tmp_path_factory: pytest.TempPathFactory, calls: list[list[int]], flush_mb: float
                               ) -> None:
    store = Store(tmp_path_factory.mktemp("store"), flush_mb=flush_mb)
    pool, embedder = some_texts(31), DigestEmbedder()
    for rows in calls:
        texts = pool[rows]
        out = store.vectors(embedder, texts, "document")
        assert out.shape == (len(rows), DIM)
        if rows:
            np.testing.assert_array_equal(out, expected(texts))
    assert len(embedder.asked) == len({i for rows in calls for i in rows})


def test_pair_scores(tmp_path: Path) -> None:
    queries, passages, scorer = some_texts(6), texts_frame(f"passage {i}" for i in range(9)), DigestScorer()
    every = np.array([(q, p) for q in range(6) for p in range(9)])
    want = np.array([digest_vector(queries["text"][int(q)] + "|" + passages["text"][int(p)])[0] for q, p in every])
    some = np.random.default_rng(0).permutation(54)[:20]
    store = Store(tmp_path)
    np.testing.assert_array_equal(store.pair_scores(scorer, queries, passages, every[some]), want[some])
    np.testing.assert_array_equal(Store(tmp_path).pair_scores(scorer, queries, passages, every), want)
    assert sum(len(pairs) for _, _, pairs in scorer.calls) == 54
    for _, _, pairs in scorer.calls:  # by passage, then query
        assert pairs.tolist() == sorted(pairs.tolist(), key=lambda pair: (pair[1], pair[0]))


def test_a_scorer_sees_only_the_texts_of_missing_pairs(tmp_path: Path) -> None:
    queries, passages, scorer = some_texts(4), texts_frame(f"passage {i}" for i in range(5)), DigestScorer()
    store = Store(tmp_path)
    store.pair_scores(scorer, queries, passages, np.array([[3, 4], [1, 4], [3, 4]]))
    seen_queries, seen_passages, pairs = scorer.calls[0]
    assert seen_queries == queries["text"].gather([1, 3]).to_list()
    assert seen_passages == ["passage 4"]
    assert pairs.tolist() == [[0, 0], [1, 0]]
    assert store.made["pairs"] == 2
    assert store.pair_scores(scorer, queries, passages, np.empty((0, 2), np.int64)).shape == (0,)


def test_nan_names_model_and_text_and_keeps_earlier_work(tmp_path: Path) -> None:
    texts = texts_frame(["x" * (20 - i) for i in range(12)])  # longest first in blocks of 4: the bad is in the second
    bad = texts["text"][5]
    with pytest.raises(MemlabError, match=f"digest gave NaN for '{bad}'"):
        Store(tmp_path).vectors(DigestEmbedder(bad=bad), texts, "document")
    healthy = DigestEmbedder()
    np.testing.assert_array_equal(Store(tmp_path).vectors(healthy, texts, "document"), expected(texts))
    assert healthy.asked == texts["text"][4:].to_list()


class Careless(DigestEmbedder):
    def encode(self, texts: Sequence[str], role: Role) -> Iterator[tuple[Ints, Floats]]:
        at, vectors = next(super().encode(texts, role))
        yield at[:-1], vectors[:-1] if self.name == "few" else vectors[:-1, :-1]


@pytest.mark.parametrize(("name", "message"), [("few", "few gave nothing for 1 of 4 texts"),
                                               ("narrow", r"shape \(3, 7\), expected \(3, 8\)")])
def test_a_model_that_breaks_its_promise_is_named(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(MemlabError, match=message):
        Store(tmp_path).vectors(Careless(name), some_texts(4), "document")


def test_flushes_are_large(tmp_path: Path) -> None:
    Store(tmp_path / "one").vectors(DigestEmbedder(), some_texts(100), "document")
    assert len(segments(tmp_path / "one")) == 1
    mb = 12 * DIM * 4 / 1e6
    Store(tmp_path / "more", flush_mb=mb).vectors(DigestEmbedder(), some_texts(100), "document")
    assert len(segments(tmp_path / "more")) == 9  # 8 x 12 + 4
    Store(tmp_path / "timed", flush_seconds=0).vectors(DigestEmbedder(), some_texts(100), "document")
    assert len(segments(tmp_path / "timed")) == 25


def test_a_flipped_byte_is_named_and_recomputed(tmp_path: Path) -> None:
    texts = some_texts(30)
    Store(tmp_path, flush_seconds=0).vectors(DigestEmbedder(batch=10), texts, "document")
    victim = segments(tmp_path)[1]
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(data)
    embedder = DigestEmbedder(batch=10)
    with pytest.warns(UserWarning, match=victim.name):
        np.testing.assert_array_equal(Store(tmp_path).vectors(embedder, texts, "document"), expected(texts))
    assert len(embedder.asked) == 10
    assert victim.with_name(victim.name + ".damaged").exists()
    third = DigestEmbedder()
    Store(tmp_path).vectors(third, texts, "document")
    assert third.asked == []


def test_other_processes_segments_are_seen_and_what_is_mapped_stays(tmp_path: Path) -> None:
    texts = some_texts(20)
    mine, theirs = Store(tmp_path), Store(tmp_path)
    mine.vectors(DigestEmbedder(), texts[:10], "document")
    theirs.vectors(DigestEmbedder(), texts[10:], "document")
    embedder = DigestEmbedder()
    np.testing.assert_array_equal(mine.vectors(embedder, texts, "document"), expected(texts))
    assert embedder.asked == []
    for path in segments(tmp_path):
        path.unlink()
    np.testing.assert_array_equal(mine.vectors(embedder, texts, "document"), expected(texts))
    assert embedder.asked == []
    more = some_texts(21)  # one is missing, so the folder is read again
    np.testing.assert_array_equal(mine.vectors(embedder, more, "document"), expected(more))
    assert len(embedder.asked) == 21


def test_the_first_of_two_equal_keys_by_name_counts(tmp_path: Path) -> None:
    texts = some_texts(1)
    keys = key_columns(texts["text_id"])
    for value in range(1, 9):  # as many processes would
        SegmentIndex(tmp_path / "other").add([keys, np.full((1, DIM), value, np.float32)])
    index = Store(tmp_path)._index("vectors", DigestEmbedder(), "document")
    assert index.path is not None
    index.path.parent.mkdir()
    os.rename(tmp_path / "other", index.path)
    segment = read(segments(tmp_path)[0])
    assert segment is not None
    assert Store(tmp_path).vectors(DigestEmbedder(), texts, "document")[0, 0] == segment.arrays[1][0, 0]


@pytest.mark.slow
def test_eight_processes_fill_one_store(tmp_path: Path) -> None:
    workers = [subprocess.Popen([sys.executable, store_worker.__file__, str(tmp_path), "300", str(seed)], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env={**os.environ, "POLARS_MAX_THREADS": "1"}) for seed in range(8)]
    for worker in workers:
        output, _ = worker.communicate(timeout=600)
        assert worker.returncode == 0, output
        assert output == "ready\ndone\n"
    embedder, texts = DigestEmbedder(), some_texts(300)
    np.testing.assert_array_equal(Store(tmp_path).vectors(embedder, texts, "document"), expected(texts))
    assert embedder.asked == []
    assert not list(tmp_path.glob("*/*/.*.tmp"))
