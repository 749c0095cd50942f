"""Exact MaxSim over stored token vectors, recomputed pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.stages.search import maxsim, token_pools
from memlab.stages.search.maxsim import COLUMNS, DocumentFrequencies, best_matches, columns
from memlab.store.token_vectors import BITS, Precision, TokenVectors, make_block, rotation

DIM = 8
lengths = st.lists(st.integers(1, 6), min_size=1, max_size=8)


def stored(parts: list[np.ndarray], ids: list[np.ndarray], split: int, precision: Precision) -> TokenVectors:
    """Texts in two blocks, the second of them first."""
    keys = np.zeros((len(parts), 2), np.uint64)
    halves = [slice(split, None), slice(0, split)]
    blocks = [make_block(keys[half], ids[half], parts[half], precision) for half in halves if parts[half]]
    place = [(0, i - split) if i >= split else (len(blocks) - 1, i) for i in range(len(parts))]
    begins = np.array([blocks[block].starts[row] for block, row in place])
    return TokenVectors(blocks, np.array([block for block, _ in place]), begins, np.array([len(p) for p in parts]))


@given(lengths, st.integers(0, 8), st.integers(1, 5), st.integers(1, 20), st.integers(1, 20),
       st.sampled_from(sorted(BITS)), st.integers(0, 99))
def test_matches_are_the_maxima_of_each_pair(sizes: list[int], split: int, asked: int, tokens: int, cached: int,
                                             precision: Precision, seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = [rng.standard_normal((n, DIM)).astype(np.float32) for n in sizes]
    query = rng.standard_normal((asked, DIM)).astype(np.float32)
    texts = stored(parts, [np.arange(n) for n in sizes], min(split, len(sizes)), precision)
    rows = rng.permutation(len(sizes))[: rng.integers(1, len(sizes) + 1)]  # some of the texts, in any order
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maxsim, "TOKENS", tokens)
        patch.setattr(token_pools, "CACHED", cached)
        best = best_matches(query, texts.take(rows))
    wanted = np.array([[max(float(q @ token) for token in texts.text(int(row))[1]) for q in query] for row in rows])
    np.testing.assert_allclose(best, wanted, atol=1e-4)


@given(st.integers(0, 3 * COLUMNS), st.booleans())
def test_columns_hold_the_question_and_zeros(tokens: int, turned: bool) -> None:
    query = np.random.default_rng(tokens).standard_normal((tokens, 8)).astype(np.float32)
    upright = columns(query, turned).numpy()
    assert upright.shape == (8, next(n for n in (16, 24, 32, 40, 48) if n >= tokens))
    assert upright[:, :tokens] == pytest.approx((query @ rotation(8) if turned else query).T, abs=1e-6)
    assert not upright[:, tokens:].any()


@given(lengths, st.integers(0, 99), st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True))
def test_document_frequencies_count_visible_memories(sizes: list[int], seed: int, asked: list[int]) -> None:
    rng = np.random.default_rng(seed)
    ids = [rng.integers(0, 6, n) for n in sizes]
    texts = stored([np.ones((n, DIM), np.float32) for n in sizes], ids, len(sizes) // 2, "fp32")
    text_of = rng.integers(0, len(sizes), 10)
    frequencies = DocumentFrequencies(texts, text_of, np.array(asked))
    for visible in range(11):
        wanted = [sum(token in ids[text] for text in text_of[:visible]) for token in asked]
        assert frequencies.count(np.array(asked), visible).tolist() == wanted
