"""The store of one memory: what the shared store promises, and an addition that costs what it is."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from memlab.errors import MemlabError
from memlab.live.database import Database
from memlab.live.vector_log import BLOCK, LiveStore, VectorLog
from memlab.store.store import KEYS
from memlab.tables import texts_frame
from tests.search.world import Overlap
from tests.store.worker import DIM, DigestEmbedder, expected, some_texts

OPEN: dict[Path, Database] = {}


def opened(folder: Path) -> LiveStore:
    """The store of a folder, opened anew."""
    if folder in OPEN:
        OPEN[folder].close()
    OPEN[folder] = Database(folder)
    OPEN[folder].open()
    return LiveStore(OPEN[folder])


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    for database in OPEN.values():
        database.close()
    OPEN.clear()


def test_vectors_are_made_once_and_found_again(tmp_path: Path) -> None:
    store, embedder, texts = opened(tmp_path), DigestEmbedder(), some_texts(10)
    np.testing.assert_allclose(store.vectors(embedder, texts[:4], "document"), expected(texts[:4]), atol=1e-6)
    np.testing.assert_allclose(store.vectors(embedder, texts, "document"), expected(texts), atol=1e-6)
    assert (store.made["vectors"], store.found["vectors"]) == (10, 4)
    again = opened(tmp_path)
    shuffled = texts.sample(fraction=1, shuffle=True, seed=1)
    np.testing.assert_allclose(again.vectors(embedder, shuffled, "document"), expected(shuffled), atol=1e-6)
    assert (again.made["vectors"], again.missing(embedder, texts, "document")) == (0, 0)


def test_more_rows_than_a_block(tmp_path: Path) -> None:
    keys = pl.DataFrame({"h0": np.arange(2 * BLOCK + 3, dtype=np.uint64), "h1": np.full(2 * BLOCK + 3, 7, np.uint64)})
    values = np.random.default_rng(0).normal(size=(keys.height, 3)).astype(np.float32)
    database = opened(tmp_path)._database
    shelf = VectorLog(tmp_path / "a", KEYS["vectors"], "{}", database)
    for start, end in ((0, 10), (10, BLOCK + 1), (BLOCK + 1, keys.height)):
        shelf.add(keys[start:end], values[start:end])
    for one in (shelf, VectorLog(tmp_path / "a", KEYS["vectors"], "{}", database)):
        out = np.zeros_like(values)
        for at, block in one.read(one.find(keys.with_row_index("at"))):
            out[at] = block
        np.testing.assert_array_equal(out, values)


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_damaged_records_are_made_anew(tmp_path: Path, damage: str) -> None:
    embedder, texts = DigestEmbedder(), some_texts(6)
    opened(tmp_path).vectors(embedder, texts, "document")
    (path,) = tmp_path.rglob("*.f32")
    assert path.name == f"{DIM}.f32"
    raw = path.read_bytes()
    path.write_bytes(raw[:-5] if damage == "cut" else raw[:40] + bytes([raw[40] ^ 1]) + raw[41:])
    store = opened(tmp_path)
    np.testing.assert_allclose(store.vectors(embedder, texts, "document"), expected(texts), atol=1e-6)
    assert store.made["vectors"] == 1
    again = opened(tmp_path)
    np.testing.assert_allclose(again.vectors(embedder, texts, "document"), expected(texts), atol=1e-6)
    assert again.made["vectors"] == 0


@pytest.mark.filterwarnings("ignore:vectors are not saved")
def test_an_addition_that_failed_costs_no_later_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise MemlabError("the disk is full")

    store, embedder, texts = opened(tmp_path), DigestEmbedder(), some_texts(5)
    with monkeypatch.context() as patch:
        patch.setattr(store._database, "_check_files", fail)  # just before the commit
        store.vectors(embedder, texts[:2], "document")
    store.vectors(embedder, texts, "document")
    again = opened(tmp_path)
    np.testing.assert_allclose(again.vectors(embedder, texts[2:], "document"), expected(texts[2:]), atol=1e-6)
    assert again.made["vectors"] == 0


def test_what_belongs_to_a_question_is_not_kept(tmp_path: Path) -> None:
    store, embedder, texts = opened(tmp_path), DigestEmbedder(), some_texts(3)
    store.vectors(embedder, texts, "query")
    pairs = np.array([[0, 0], [0, 1]])
    scores = store.pair_scores(Overlap(), texts_frame(["a b"]), texts_frame(["a", "c"]), pairs)
    assert scores.tolist() == [0.5, 0.0]
    store.pair_scores(Overlap(), texts_frame(["a b"]), texts_frame(["a", "c"]), pairs)
    assert (store.made["pairs"], store.found["pairs"]) == (2, 2)
    assert not list(tmp_path.rglob("*.f32"))
    store.forget_questions()
    store.vectors(embedder, texts, "query")
    assert store.made["vectors"] == 6


def forget_others(store: LiveStore, kept: pl.Series) -> None:
    with store._database.transaction():
        store.forget_other_texts(kept)
    store.clear_forgotten()


@pytest.mark.parametrize("used", [True, False])  # the model was used since loading, or was not
def test_what_is_forgotten_is_overwritten_and_its_rows_are_used_again(tmp_path: Path, used: bool) -> None:
    embedder, texts = DigestEmbedder(), some_texts(5)
    store = opened(tmp_path)
    store.vectors(embedder, texts, "document")
    (path,) = tmp_path.rglob("*.f32")
    rows = np.fromfile(path, "<f4").reshape(-1, DIM)
    order = [next(n for n in range(5) if (expected(texts)[n] == row).all()) for row in rows]
    store = store if used else opened(tmp_path)
    forget_others(store, texts["text_id"][[order[n] for n in (0, 2, 3)]])
    left = np.fromfile(path, "<f4").reshape(-1, DIM)
    np.testing.assert_array_equal(left[[0, 2, 3]], rows[[0, 2, 3]])
    assert left.shape == (4, DIM)  # the last row was cut off
    assert not left[1].any()
    for one in (store, LiveStore(store._database)):
        made = one.made["vectors"]
        np.testing.assert_allclose(one.vectors(embedder, texts, "document"), expected(texts), atol=1e-6)
        assert one.made["vectors"] - made == (2 if one is store else 0)
    assert path.stat().st_size == 5 * DIM * 4


def test_a_row_that_nothing_accounts_for_is_overwritten_on_opening(tmp_path: Path) -> None:
    texts = some_texts(3)
    store = opened(tmp_path)
    store.vectors(DigestEmbedder(), texts, "document")
    (path,) = tmp_path.rglob("*.f32")
    whole = path.read_bytes()
    with store._database.transaction():  # a process that is killed right after this commit
        store._database.run("DELETE FROM vectors WHERE row > ?", (0,))
    opened(tmp_path)
    assert path.read_bytes() == whole[:4 * DIM]


def test_a_model_that_gives_no_numbers_is_told(tmp_path: Path) -> None:
    texts = some_texts(3)
    with pytest.raises(MemlabError, match="gave NaN for"):
        opened(tmp_path).vectors(DigestEmbedder(bad=texts["text"][1]), texts, "document")


def test_vectors_that_cannot_be_read_this_time_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder, texts = DigestEmbedder(), some_texts(3)
    opened(tmp_path).vectors(embedder, texts, "document")
    real = os.open

    def full(path: str | Path, *args: int) -> int:
        if str(path).endswith(".f32") and not args[0] & os.O_RDWR:
            raise OSError(errno.ENFILE, "Too many open files in system")
        return real(path, *args)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", full)
        with pytest.raises(MemlabError, match="the vectors of this memory cannot be read: Too many open files"):
            opened(tmp_path).vectors(embedder, texts, "document")
    assert opened(tmp_path).missing(embedder, texts, "document") == 0
