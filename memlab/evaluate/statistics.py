"""Paired tests and the correction for several contrasts. All p-values are two-sided.

The predicted direction is checked by the sign of the difference, not by halving p.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

RESAMPLES = 9_999
"""Random sign flips; the smallest p that they can give is 1 / 10,000."""
CHUNK = 1_000
"""Resamples held in memory at once."""


def sign_flip(differences: Values, seed: int = 0, resamples: int = RESAMPLES) -> float:
    """Return p of the paired permutation test (Fisher 1935) of differences (n,).

    p is the share of sums with random signs that are as far from 0 as the observed one. Exact where the nonzero
    differences have at most ``resamples`` sign patterns, else Monte Carlo with p = (hits + 1) / (resamples + 1)
    (Phipson and Smyth 2010). Zeros change no sum and are left out. The same test as
    ``scipy.stats.permutation_test(permutation_type="samples")`` with the mean as statistic.

    >>> sign_flip(np.array([1.0, 2.0, 3.0, 0.0]))
    0.25
    """
    moving = differences[differences != 0]
    if len(moving) == 0:
        return 1.0
    observed = abs(moving.sum()) * (1 - 1e-12)  # equal sums must count as equal after rounding
    if 2 ** min(len(moving), 62) <= resamples:
        patterns = np.arange(2 ** len(moving))[:, None] >> np.arange(len(moving)) & 1
        return float((np.abs((1 - 2 * patterns) @ moving) >= observed).mean())
    rng, hits = np.random.default_rng(seed), 0
    for start in range(0, resamples, CHUNK):
        signs = 1 - 2 * rng.integers(0, 2, (min(CHUNK, resamples - start), len(moving)), dtype=np.int8)
        hits += int((np.abs(signs @ moving) >= observed).sum())
    return (hits + 1) / (resamples + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number (Holm, Scand. J. Statist. 1979), in the order given.

    The i-th smallest of m is multiplied by m - i + 1, then made no smaller than the one before, at most 1.

    >>> holm([.01, .04, .03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    adjusted, floor = [1.0] * len(p_values), 0.0
    for place, index in enumerate(order):
        floor = min(1.0, max(floor, (len(p_values) - place) * p_values[index]))
        adjusted[index] = floor
    return adjusted
