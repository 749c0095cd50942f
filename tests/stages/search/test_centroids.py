"""TokenCentroids of token vectors."""

from __future__ import annotations

import numpy as np
import pytest

from memlab.stages.search.centroids import TokenCentroids
from memlab.store.token_vectors import TokenVectors, make_block


def directions(n: int, seed: int = 0) -> np.ndarray:
    vectors = np.random.default_rng(seed).standard_normal((n, 16)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def texts_of(vectors: np.ndarray, keys: np.ndarray | None = None) -> TokenVectors:
    """One token per text."""
    n = len(vectors)
    keys = np.random.default_rng(9).integers(0, 2**63, (n, 2), np.uint64) if keys is None else keys
    block = make_block(keys, [np.array([0])] * n, list(vectors[:, None]), "fp32")
    return TokenVectors([block], np.zeros(n, np.int64), block.starts[:-1], np.diff(block.starts))


def test_centroids_lie_in_the_middle_of_groups_that_are_apart() -> None:
    middles = np.eye(16, dtype=np.float32)[:6]
    noise = np.random.default_rng(1).standard_normal((600, 16)).astype(np.float32) * 0.02
    vectors = np.repeat(middles, 100, axis=0) + noise
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    centroids = TokenCentroids.train(texts_of(vectors), 24, seed=0)
    assert np.linalg.norm(centroids.vectors, axis=1) == pytest.approx(np.ones(24), abs=1e-5)
    nearest = (vectors * centroids.vectors[centroids.nearest(vectors)]).sum(axis=1)
    assert nearest.min() > 0.98


def test_nearly_all_vectors_get_their_nearest_centroid() -> None:
    centroids, vectors = TokenCentroids(directions(400)), directions(2000, seed=1)
    nearest = np.argmax(vectors @ centroids.vectors.T, axis=1)
    assert np.mean(centroids.nearest(vectors) == nearest) > 0.8
    given = (vectors * centroids.vectors[centroids.nearest(vectors)]).sum(axis=1)
    assert np.mean((vectors @ centroids.vectors.T).max(axis=1) - given) < 0.02


def test_the_centroid_of_a_vector_does_not_depend_on_what_it_is_compared_with(monkeypatch: pytest.MonkeyPatch) -> None:
    centroids, vectors = TokenCentroids(directions(400)), directions(100, seed=1)
    nearest = centroids.nearest(vectors)
    monkeypatch.setattr("memlab.stages.search.centroids.TOGETHER", 7)
    assert centroids.nearest(vectors).tolist() == nearest.tolist()
    assert centroids.nearest(vectors[::-1])[::-1].tolist() == nearest.tolist()


def test_the_closest_centroids_come_with_their_products_and_the_closest_last() -> None:
    centroids, query = TokenCentroids(directions(50)), directions(3, seed=2)
    ids, products = centroids.closest(query, 7)
    every = query @ centroids.vectors.T
    assert ids.tolist() == np.argsort(every, axis=1)[:, -7:].tolist()
    assert products == pytest.approx(np.sort(every, axis=1)[:, -7:], abs=1e-6)
    assert centroids.closest(query, 99)[0].shape == (3, 50)


def test_training_does_not_depend_on_the_order_of_the_texts() -> None:
    vectors, turned = directions(500), np.random.default_rng(3).permutation(500)
    keys = np.random.default_rng(4).integers(0, 2**63, (500, 2), np.uint64)
    one = TokenCentroids.train(texts_of(vectors, keys), 12, seed=0)
    other = TokenCentroids.train(texts_of(vectors[turned], keys[turned]), 12, seed=0)
    assert np.array_equal(one.vectors, other.vectors)
