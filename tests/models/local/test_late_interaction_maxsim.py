"""The best products of query tokens, recomputed by hand, on devices that are not there, and without memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from memlab.models.local import late_interaction
from memlab.models.local.late_interaction import best_products, mean_matches, query_vectors
from memlab.support.errors import MemlabError


def unit(rng: np.random.Generator, *shape: int) -> torch.Tensor:
    return torch.nn.functional.normalize(torch.from_numpy(rng.standard_normal(shape).astype(np.float32)), dim=-1)


def on_two_devices(texts: list[str], role: str) -> Iterator[tuple[np.ndarray, Any, Any]]:
    """An encoder whose batches lie on two devices in turn."""
    del role
    for i in range(len(texts)):
        device = "cpu" if i % 2 else "meta"
        yield np.array([i]), torch.ones(1, 3, 4, device=device), torch.ones(1, 3, dtype=torch.bool), None


def test_query_vectors_of_several_devices_are_joined_on_the_first() -> None:
    """With two GPUs and more than one batch of queries torch.cat raised: not on the expected device."""
    vectors, starts = query_vectors(["one", "two", "three"], on_two_devices)
    assert vectors.device.type == "meta"
    assert tuple(vectors.shape) == (9, 4)
    assert starts.tolist() == [0, 3, 6, 9]


def test_products_are_computed_where_the_passage_is(monkeypatch: pytest.MonkeyPatch) -> None:
    placed: list[tuple[str, str, str]] = []

    def spy(query: Any, passages: Any, kept: Any, products: str) -> np.ndarray:
        placed.append((query.device.type, passages.device.type, products))
        return np.ones((len(query), len(passages)), np.float32)

    monkeypatch.setattr(late_interaction, "best_products", spy)
    monkeypatch.setattr(late_interaction, "query_vectors",
                        lambda texts, encode: (torch.ones(4, 4), np.array([0, 2, 4])))
    pairs = np.array([(0, 0), (1, 0), (0, 1)])
    assert len(list(mean_matches(["a", "b"], ["c", "d"], pairs, on_two_devices, "fp16"))) == 2
    assert placed == [("meta", "meta", "fp16"), ("cpu", "cpu", "fp16")]


@pytest.mark.parametrize("products", ["fp32", "fp16"])
def test_the_best_product_of_each_token_with_each_passage(products: Any) -> None:
    rng = np.random.default_rng(0)
    query, passages, kept = unit(rng, 5, 16), unit(rng, 3, 4, 16), torch.from_numpy(rng.random((3, 4)) < .7)
    kept[:, 0] = True
    expected = [[max(float(token @ passages[b, j]) for j in range(4) if kept[b, j]) for b in range(3)]
                for token in query]
    np.testing.assert_allclose(best_products(query, passages, kept, products), expected,
                               atol=1e-6 if products == "fp32" else 1e-3)


def test_where_not_one_token_fits_is_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(torch.Tensor, "amax", full)
    room = late_interaction.Room(late_interaction.CELLS)
    monkeypatch.setattr(late_interaction, "room_of", lambda device: room)
    rng = np.random.default_rng(0)
    with pytest.raises(MemlabError, match=r"(?s)2 passages of 3 tokens do not fit.*token_budget"):
        best_products(unit(rng, 4, 8), unit(rng, 2, 3, 8), torch.ones(2, 3, dtype=torch.bool), "fp32")
