"""The store of one memory: what the shared store promises, and an addition that costs what it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from memlab.errors import MemlabError
from memlab.live.vector_log import BLOCK, LiveStore, VectorLog
from memlab.store.store import KEYS
from memlab.tables import texts_frame
from tests.search.world import Overlap
from tests.store.worker import DIM, DigestEmbedder, expected, some_texts


def test_vectors_are_made_once_and_found_again(tmp_path: Path) -> None:
    store, embedder, texts = LiveStore(tmp_path), DigestEmbedder(), some_texts(10)
    np.testing.assert_allclose(store.vectors(embedder, texts[:4], "document"), expected(texts[:4]), atol=1e-6)
    np.testing.assert_allclose(store.vectors(embedder, texts, "document"), expected(texts), atol=1e-6)
    assert (store.made["vectors"], store.found["vectors"]) == (10, 4)
    again = LiveStore(tmp_path)
    shuffled = texts.sample(fraction=1, shuffle=True, seed=1)
    np.testing.assert_allclose(again.vectors(embedder, shuffled, "document"), expected(shuffled), atol=1e-6)
    assert (again.made["vectors"], again.missing(embedder, texts, "document")) == (0, 0)


def test_more_rows_than_a_block(tmp_path: Path) -> None:
    keys = pl.DataFrame({"h0": np.arange(2 * BLOCK + 3, dtype=np.uint64), "h1": np.full(2 * BLOCK + 3, 7, np.uint64)})
    values = np.random.default_rng(0).normal(size=(keys.height, 3)).astype(np.float32)
    shelf = VectorLog(tmp_path / "a", KEYS["vectors"], "{}", on_disk=True)
    for start, end in ((0, 10), (10, BLOCK + 1), (BLOCK + 1, keys.height)):
        shelf.add(keys[start:end], values[start:end])
    for one in (shelf, VectorLog(tmp_path / "a", KEYS["vectors"], "{}", on_disk=True)):
        out = np.zeros_like(values)
        for at, block in one.read(one.find(keys.with_row_index("at"))):
            out[at] = block
        np.testing.assert_array_equal(out, values)


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_damaged_records_are_made_anew(tmp_path: Path, damage: str) -> None:
    embedder, texts = DigestEmbedder(), some_texts(6)
    LiveStore(tmp_path).vectors(embedder, texts, "document")
    (path,) = tmp_path.rglob("*.rows")
    assert path.name == f"{DIM}.rows"
    raw = path.read_bytes()
    path.write_bytes(raw[:-5] if damage == "cut" else raw[:40] + bytes([raw[40] ^ 1]) + raw[41:])
    store = LiveStore(tmp_path)
    np.testing.assert_allclose(store.vectors(embedder, texts, "document"), expected(texts), atol=1e-6)
    assert store.made["vectors"] == 1
    again = LiveStore(tmp_path)
    np.testing.assert_allclose(again.vectors(embedder, texts, "document"), expected(texts), atol=1e-6)
    assert again.made["vectors"] == 0


def test_what_belongs_to_a_question_is_not_kept(tmp_path: Path) -> None:
    store, embedder, texts = LiveStore(tmp_path), DigestEmbedder(), some_texts(3)
    store.vectors(embedder, texts, "query")
    pairs = np.array([[0, 0], [0, 1]])
    scores = store.pair_scores(Overlap(), texts_frame(["a b"]), texts_frame(["a", "c"]), pairs)
    assert scores.tolist() == [0.5, 0.0]
    store.pair_scores(Overlap(), texts_frame(["a b"]), texts_frame(["a", "c"]), pairs)
    assert (store.made["pairs"], store.found["pairs"]) == (2, 2)
    assert not list(tmp_path.rglob("*.rows"))
    store.forget_questions()
    store.vectors(embedder, texts, "query")
    assert store.made["vectors"] == 6


def test_what_is_forgotten_is_overwritten(tmp_path: Path) -> None:
    embedder, texts = DigestEmbedder(), some_texts(5)
    store = LiveStore(tmp_path)
    store.vectors(embedder, texts, "document")
    LiveStore(tmp_path).forget_texts(texts["text_id"][1:3])  # also where no model has been used since loading
    store.forget_texts(texts["text_id"][1:3])
    (path,) = tmp_path.rglob("*.rows")
    gone = expected(texts)[1:3]
    assert all(vector.tobytes() not in path.read_bytes() for vector in gone)
    for one in (store, LiveStore(tmp_path)):
        made = one.made["vectors"]
        np.testing.assert_allclose(one.vectors(embedder, texts, "document"), expected(texts), atol=1e-6)
        assert one.made["vectors"] - made == (2 if one is store else 0)


def test_a_model_that_gives_no_numbers_is_told(tmp_path: Path) -> None:
    texts = some_texts(3)
    with pytest.raises(MemlabError, match="gave NaN for"):
        LiveStore(tmp_path).vectors(DigestEmbedder(bad=texts["text"][1]), texts, "document")
