"""Token vectors on a GPU that is a stand-in: the CPU under another name, or a device without memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.overrides import TorchFunctionMode

from memlab.models.local.late_interaction import Products
from memlab.stages.search import exact, late_interaction, maxsim, token_pools
from memlab.stages.search.late_index import LateIndex
from memlab.stages.search.late_interaction import WeightedLate
from memlab.stages.search.maxsim import best_matches
from memlab.stages.search.token_pools import place
from memlab.store import Store
from memlab.store.token_vectors import BITS, Precision, TokenVectors, make_block
from tests.stages.search.world import day, world
from tests.token_words import TokenWords

DIM, GPU = 8, "cpu:0"
ROOM, NO_ROOM = 10**9, 0


@dataclass(frozen=True)
class OnGpu(TokenWords):
    """A matcher whose encoder is on the stand-in."""

    products: Products = "fp32"

    def matches_on(self) -> tuple[str, Products]:
        return GPU, self.products


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    """The tensors that were copied from pinned memory, on a machine whose GPU has room."""
    copied: list[torch.Tensor] = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: copied.append(tensor) or tensor)
    monkeypatch.setattr(token_pools, "free_bytes", lambda device: ROOM)
    monkeypatch.setattr(maxsim, "_parts", {})
    return copied


def stored(sizes: Sequence[int], precision: Precision, seed: int = 0) -> TokenVectors:
    """Texts in two blocks, the second of them first."""
    rng = np.random.default_rng(seed)
    parts = [rng.standard_normal((n, DIM)).astype(np.float32) for n in sizes]
    half, keys = max(1, len(parts) // 2), np.zeros((len(parts), 2), np.uint64)
    blocks = [make_block(keys[part], [np.arange(n) for n in sizes[part]], parts[part], precision)
              for part in (slice(half, None), slice(0, half)) if parts[part]]
    number = np.array([len(blocks) - 1] * half + [0] * (len(parts) - half))
    begins = np.concatenate([block.starts[:-1] for block in reversed(blocks)])
    return TokenVectors(blocks, number, begins, np.array(sizes))


@given(st.lists(st.integers(1, 6), min_size=1, max_size=8), st.integers(1, 5), st.integers(1, 9),
       st.sampled_from(sorted(BITS)), st.sampled_from([ROOM, NO_ROOM]), st.integers(0, 99))
def test_a_gpu_finds_the_matches_of_the_cpu(sizes: list[int], asked: int, tokens: int, precision: Precision, room: int,
                                            seed: int) -> None:
    rng = np.random.default_rng(seed)
    query, texts = rng.standard_normal((asked, DIM)).astype(np.float32), stored(sizes, precision, seed)
    some = rng.permutation(len(sizes))[: rng.integers(1, len(sizes) + 1)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor)
        patch.setattr(token_pools, "free_bytes", lambda device: room)
        patch.setattr(token_pools, "SENT", tokens)
        patch.setattr(maxsim, "GPU_TOKENS", tokens)
        placed, halved = (place(texts, GPU, products) for products in ("fp32", "fp16"))
        assert (placed.held is None) == (room == NO_ROOM)
        for texts_of in (lambda one: one, lambda one: one.take(some)):
            wanted = best_matches(query, texts_of(texts))
            np.testing.assert_allclose(best_matches(query, texts_of(placed)), wanted, atol=1e-5)
            half = best_matches(query, texts_of(halved))
            assert half.dtype == np.float32
            np.testing.assert_allclose(half, wanted, atol=.05)


@pytest.mark.parametrize("precision", sorted(BITS))
def test_vectors_travel_once_and_as_they_are_stored(precision: Precision, sent: list[torch.Tensor]) -> None:
    texts = stored([3, 5, 2], precision)
    placed = place(texts, GPU, "fp32")
    scales = 0 if precision in ("fp32", "fp16") else 4 * 10
    assert sum(tensor.nbytes for tensor in sent) == sum(block.vectors.nbytes for block in texts.blocks) + scales
    sent.clear()
    for rows in (np.arange(3), np.array([2, 0])):
        best_matches(np.ones((2, DIM), np.float32), placed.take(rows))
    assert {tensor.dtype for tensor in sent if tensor.ndim == 2} == {torch.float32}  # the question alone
    assert all(tensor.shape == (DIM, maxsim.COLUMNS) for tensor in sent if tensor.ndim == 2)


def out_of_memory(*arguments: object, **options: object) -> Any:
    raise torch.OutOfMemoryError("CUDA out of memory.")


@pytest.mark.parametrize("room", [ROOM, NO_ROOM])
def test_pieces_are_halved_when_memory_runs_out(room: int, sent: list[torch.Tensor], monkeypatch: pytest.MonkeyPatch
                                                ) -> None:
    monkeypatch.setattr(token_pools, "free_bytes", lambda device: room)
    monkeypatch.setattr(maxsim, "GPU_TOKENS", 64)
    monkeypatch.setattr(maxsim, "FEWEST", 1)
    query, texts = np.ones((2, DIM), np.float32), stored([1] * 64, "int8")
    numbers, sizes, real, wanted = 2 * 17, [], torch.segment_reduce, best_matches(query, texts)

    def short(products: torch.Tensor, *arguments: Any, **options: Any) -> torch.Tensor:
        """On a device that holds few numbers."""
        sizes.append(products.numel())
        return real(products, *arguments, **options) if products.numel() <= numbers else out_of_memory()

    monkeypatch.setattr(torch, "segment_reduce", short)
    placed = place(texts, GPU, "fp32")
    assert (best_matches(query, placed) == wanted).all()
    first = len(sizes)
    assert sizes[0] > numbers
    assert (best_matches(query, placed) == wanted).all()
    assert max(sizes[first:]) <= numbers  # remembered


def test_without_memory_for_the_smallest_pieces_the_cpu_takes_over(
    sent: list[torch.Tensor], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    query, texts = np.ones((2, DIM), np.float32), stored([1] * 64, "4bit")
    wanted, real = best_matches(query, texts), maxsim._best
    monkeypatch.setattr(maxsim, "_best", lambda asked, placed, tokens: out_of_memory() if placed.device == GPU
                        else real(asked, placed, tokens))
    exact.log_once.cache_clear()
    with caplog.at_level("WARNING", "memlab"):
        assert (best_matches(query, place(texts, GPU, "fp16")) == wanted).all()
    assert "late interaction runs on the CPU: the GPU ran out of memory" in caplog.text


class OneDevice(TorchFunctionMode):
    """Refuses every call with tensors of two devices, as a GPU does; the device ``meta`` alone allows some."""

    def __torch_function__(self, call: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
        tensors = [one for one in (*arguments, *(options or {}).values()) if isinstance(one, torch.Tensor)]
        assert len({tensor.device.type for tensor in tensors}) < 2, call
        return call(*arguments, **(options or {}))


@pytest.mark.parametrize("precision", sorted(BITS))
@pytest.mark.parametrize("room", [ROOM, NO_ROOM])
@pytest.mark.parametrize("products", ["fp32", "fp16"])
def test_all_products_are_on_the_device_and_the_maxima_alone_come_back(
    precision: Precision, room: int, products: Products, sent: list[torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    used, back, real = set(), [], torch.segment_reduce
    monkeypatch.setattr(token_pools, "free_bytes", lambda device: room)
    monkeypatch.setattr(torch.Tensor, "cpu", lambda tensor: back.append(tensor) or torch.zeros(tensor.shape))
    monkeypatch.setattr(torch, "segment_reduce", lambda one, *arguments, **options: used.add(one.dtype)
                        or real(one, *arguments, **options))
    with OneDevice():
        placed = place(stored([3, 1, 4, 2], precision), "meta", products)
        best_matches(np.ones((2, DIM), np.float32), placed.take(np.array([3, 0, 2])))
    assert [(tensor.device.type, tuple(tensor.shape)) for tensor in back] == [("meta", (3, 2))]
    assert used == {torch.float32 if products == "fp32" else torch.float16}


MEMORIES = [(corpus, f"{word} {other}", day(i), "turn") for corpus in (0, 1)
            for i, word in enumerate(("tea", "cat", "rain", "ship")) for other in ("now", "then", "here")]
QUESTIONS = [(corpus, text, day(9)) for corpus in (0, 1) for text in ("tea now", "rain", "ship here now")]


def hits(stage: WeightedLate) -> pl.DataFrame:
    return stage.run(world(MEMORIES, QUESTIONS), Store())["hits"]


@pytest.mark.parametrize(("kind", "fields"), [(WeightedLate, {}), (LateIndex, {
    "exact_below": 0, "exact_queries": 0, "candidates": 100, "probes": 100})])
@pytest.mark.parametrize("room", [ROOM, NO_ROOM])
def test_a_pool_is_sent_once_for_all_its_questions(kind: Any, fields: dict[str, Any], room: int,
                                                   sent: list[torch.Tensor], monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = hits(kind(matcher=TokenWords(), precision="int8", **fields))
    assert not sent
    monkeypatch.setattr(token_pools, "free_bytes", lambda device: room)
    monkeypatch.setattr(late_interaction, "cells", lambda texts: 1)  # a question at a time
    assert hits(kind(matcher=OnGpu(), precision="int8", **fields)).equals(wanted)
    times = 1 if room else 3
    assert sum(len(tensor) for tensor in sent if tensor.dtype == torch.int8) == times * 2 * len(MEMORIES)
