"""Exact search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.stages.search import exact
from memlab.stages.search.exact import Exact, Flat, Index
from memlab.stages.search.hits import topk


def test_blocks_change_nothing() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((50, 8)).astype(np.float32)
    vectors[20:30] = vectors[3]  # ties across blocks
    queries, seen = rng.standard_normal((7, 8)).astype(np.float32), np.array([50, 0, 1, 22, 49, 50, 7])
    whole = vectors.astype(float) @ queries.T.astype(float)
    for block in (1, 4, 17, 1000):
        for i, (at, scores) in enumerate(Exact(vectors, block).search(queries, seen, 5)):
            order = at[topk(scores, at, 5)]
            assert order.tolist() == topk(whole[:seen[i], i], np.arange(seen[i]), 5).tolist()
            assert scores == pytest.approx(whole[at, i], abs=1e-5)
            assert len(set(at.tolist())) == len(at)


def test_flat_is_an_index_whose_device_is_no_identity() -> None:
    assert isinstance(Flat(), Index)
    assert Flat(device="cpu", block=3).identity() == Flat().identity()
    assert Flat().open(np.eye(2, dtype=np.float32), None).search(np.eye(2, dtype=np.float32)[:0],
                                                                 np.array([], np.int64), 3) == []


class Counted:
    """Vectors that count how often each row is read by slices."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows, self.reads = rows, np.zeros(len(rows), int)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, at: Any) -> np.ndarray:
        if isinstance(at, slice):
            self.reads[at] += 1
        return self.rows[at]


@pytest.fixture
def fake_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose GPU is the CPU, and where every search is worth a copy to it."""
    monkeypatch.setattr(exact, "_has_gpu", lambda: True)
    monkeypatch.setattr(exact, "GPU", "cpu")
    monkeypatch.setattr(exact, "GPU_PAYS", 0)
    monkeypatch.setattr(exact, "SENT", 0)
    exact.log_once.cache_clear()


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 60))
def test_on_a_gpu_the_best_are_those_of_exact_search(seed: int, depth: int, block: int) -> None:
    """Also with more ties at the cut than the device brings back at first, and where queries see different prefixes."""
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-9, 10, (150, 4)).astype(np.float32)  # their products are exact, and often equal
    vectors[rng.integers(0, 150, 110)] = vectors[3]
    queries = np.concatenate([rng.integers(-9, 10, (5, 4)).astype(np.float32), vectors[3:4]])
    visible = rng.integers(0, 151, 6)
    found = exact.ExactOnDevice(vectors, block, "cpu").search(queries, visible, depth)
    for i, ((at, scores), (true, best)) in enumerate(zip(found, Exact(vectors).search(queries, visible, depth))):
        assert (at < visible[i]).all()
        assert len(set(at.tolist())) == len(at)
        assert scores == pytest.approx(vectors[at] @ queries[i], abs=1e-6)
        assert at[topk(scores, at, depth)].tolist() == true[topk(best, true, depth)].tolist()


def test_vectors_stay_on_the_device_where_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = Counted(np.eye(50, dtype=np.float32))
    searcher = exact.ExactOnDevice(vectors, 20, "cpu")
    monkeypatch.setattr(exact, "free_bytes", lambda device: 10**6)
    for _ in range(3):
        searcher.search(np.eye(50, dtype=np.float32), np.full(50, 50), 2)
    assert set(vectors.reads.tolist()) == {1}
    streamed = exact.ExactOnDevice(vectors, 20, "cpu")
    monkeypatch.setattr(exact, "free_bytes", lambda device: 100)
    for _ in range(3):
        streamed.search(np.eye(50, dtype=np.float32), np.full(50, 50), 2)
    assert set(vectors.reads.tolist()) == {4}


def test_products_in_memory_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "CELLS", 40)
    vectors = np.eye(30, dtype=np.float32)
    found = exact.ExactOnDevice(vectors, 20, "cpu").search(vectors, np.full(30, 30), 1)
    assert [at[scores.argmax()] for at, scores in found] == list(range(30))


def test_a_gpu_without_memory_leaves_the_search_to_the_cpu(
    fake_gpu: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import torch

    def full(*arguments: object, **options: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(torch.Tensor, "topk", full)
    exact.log_once.cache_clear()
    vectors = np.eye(30, dtype=np.float32)
    with caplog.at_level("WARNING", "memlab"):
        found = Flat().open(vectors, None).search(vectors, np.full(30, 30), 1)
    assert [at[scores.argmax()] for at, scores in found] == list(range(30))
    assert "exact search runs on the CPU: the GPU ran out of memory" in caplog.text


def searched_on(vectors: np.ndarray, rounds: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The device of each of some searches of five queries; those on the GPU keep its vectors there."""
    where: list[str] = []
    for cls, device in ((Exact, "cpu"), (exact.ExactOnDevice, "gpu")):
        real = cls.search
        monkeypatch.setattr(cls, "search", lambda self, *a, real=real, device=device: (where.append(device),
                                                                                       real(self, *a))[1])
    monkeypatch.setattr(exact, "free_bytes", lambda device: 10**9)
    searcher = Flat().open(vectors, None)
    for _ in range(rounds):
        searcher.search(vectors[:5], np.full(5, len(vectors)), 3)
    return where


@pytest.mark.parametrize(("least", "sent", "devices"), [
    (5 * 100 * 8, 0, ["gpu", "gpu"]),      # multiply-adds of the search: 5 queries x 100 vectors x 8 numbers
    (5 * 100 * 8 + 1, 0, ["cpu", "cpu"]),
    (0, 5, ["gpu", "gpu"]),                # 5 for each of 100 x 8 numbers
    (1, 5, ["cpu", "cpu"])])
def test_the_gpu_is_used_from_so_many_products(fake_gpu: None, least: int, sent: int, devices: list[str],
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "GPU_PAYS", least)
    monkeypatch.setattr(exact, "SENT", sent)
    vectors = np.random.default_rng(0).standard_normal((100, 8)).astype(np.float32)
    assert searched_on(vectors, 2, monkeypatch) == devices


def test_a_gpu_that_rounds_coarsely_changes_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """TF32 can be on in the process: more vectors than are brought back at first lie within its rounding."""
    real = exact.ExactOnDevice._send
    monkeypatch.setattr(exact.ExactOnDevice, "_send", lambda self, *bounds: real(self, *bounds).bfloat16().float())
    rng = np.random.default_rng(0)
    centre = rng.standard_normal(64)
    vectors = (centre + .05 * rng.standard_normal((2000, 64))).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    queries, visible = (centre / np.linalg.norm(centre))[None].astype(np.float32), np.array([1500])
    (at, scores), = exact.ExactOnDevice(vectors, 256, "cpu").search(queries, visible, 10)
    (true, best), = Exact(vectors).search(queries, visible, 10)
    assert at[topk(scores, at, 10)].tolist() == true[topk(best, true, 10)].tolist()
