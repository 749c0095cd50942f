"""Codes of 2 and 4 bits, recomputed number by number, and their errors as theory has them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from memlab.models.protocols import Floats
from memlab.store.token_vectors import decode, encode, levels, rotation
from memlab.support.errors import MemlabError

BITS = pytest.mark.parametrize("bits", [2, 4])


def unit_vectors(count: int, dim: int, seed: int = 0) -> Floats:
    vectors = np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def decoded(vectors: Floats, bits: int) -> Floats:
    codes, scales = encode(vectors, bits)
    turned: Floats = decode(torch.from_numpy(codes), bits).numpy() * scales[:, None]
    return turned @ rotation(vectors.shape[1]).T


@BITS
def test_each_level_is_the_mean_of_the_normal_numbers_that_are_rounded_to_it(bits: int) -> None:
    table = levels(bits).astype(np.float64)
    assert len(table) == 2**bits
    edges = np.concatenate([[-np.inf], (table[1:] + table[:-1]) / 2, [np.inf]])
    means = (norm.pdf(edges[:-1]) - norm.pdf(edges[1:])) / np.diff(norm.cdf(edges))
    np.testing.assert_allclose(table, means, atol=2e-3)


def test_the_rotation_keeps_lengths_and_angles() -> None:
    turned = rotation(96).astype(np.float64)
    np.testing.assert_allclose(turned @ turned.T, np.eye(96), atol=1e-5)


@pytest.mark.parametrize(("bits", "error"), [(2, 0.1175), (4, 0.00955)])  # Max, 1960, table I
def test_vectors_differ_from_their_codes_by_the_error_of_the_table(bits: int, error: float) -> None:
    vectors = unit_vectors(500, 384)
    codes, _ = encode(vectors, bits)
    turned = vectors @ rotation(384)
    unscaled = decode(torch.from_numpy(codes), bits).numpy() / 384**0.5
    assert ((turned - unscaled) ** 2).sum(axis=1).mean() == pytest.approx(error, rel=0.05)


@BITS
@given(st.integers(1, 6), st.sampled_from([4, 8, 20]), st.integers(0, 99))
def test_each_number_has_the_level_next_to_it(bits: int, count: int, dim: int, seed: int) -> None:
    vectors = unit_vectors(count, dim, seed)
    codes, _ = encode(vectors, bits)
    assert codes.shape == (count, dim * bits // 8)
    numbers = vectors @ rotation(dim) * dim**0.5
    nearest = levels(bits)[np.abs(numbers[:, :, None] - levels(bits)).argmin(axis=2)]
    np.testing.assert_array_equal(decode(torch.from_numpy(codes), bits).numpy(), nearest)


@BITS
@given(st.integers(0, 99), st.floats(1e-3, 1e3))
def test_a_vector_has_the_right_product_with_its_own_code(bits: int, seed: int, length: float) -> None:
    vectors = unit_vectors(3, 16, seed) * np.float32(length)
    np.testing.assert_allclose((decoded(vectors, bits) * vectors).sum(axis=1), [length**2] * 3, rtol=1e-4)


@BITS
def test_nothing_is_nothing(bits: int) -> None:
    assert not decoded(np.zeros((2, 8), np.float32), bits).any()
    assert encode(np.zeros((0, 8), np.float32), bits)[0].shape == (0, bits)


def test_codes_that_do_not_fill_a_byte_are_refused() -> None:
    with pytest.raises(MemlabError, match="vectors of 6 numbers do not fill whole bytes of 2 bits each"):
        encode(unit_vectors(1, 6), 2)
