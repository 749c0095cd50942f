"""Intervals, 95 % by default, of a share and of a mean over independent questions.

Where an interval is undefined (fewer than two observations) the result is None.
"""

from __future__ import annotations

import numpy as np
import scipy  # its parts are loaded when they are used

from memlab.evaluate.statistics import CHUNK, Values

Interval = tuple[float, float] | None

LEVEL = 0.95


def wilson(hits: int, n: int, level: float = LEVEL) -> Interval:
    """Return the score interval of a share (Wilson, JASA 1927): within [0, 1], not empty for 0 of n and n of n.

    >>> [round(x, 4) for x in wilson(9, 10)]
    [0.5958, 0.9821]
    """
    if n == 0:
        return None
    z2 = float(scipy.special.ndtri((1 + level) / 2)) ** 2
    centre, half = hits + z2 / 2, np.sqrt(z2 * (hits * (n - hits) / n + z2 / 4))
    return max(0.0, float((centre - half) / (n + z2))), min(1.0, float((centre + half) / (n + z2)))


def bca(columns: Values, seed: int = 0, resamples: int = 9_999, level: float = LEVEL) -> list[Interval]:
    """Return the bias-corrected accelerated bootstrap interval of each column's mean, (n, m) (Efron, JASA 1987).

    With B resampled means t*, mean t: z0 = Phi^-1(share of t* < t, ties by half), a = sum d^3 / (6 (sum d^2)^1.5)
    with d the jackknife deviations, bounds = quantiles Phi(z0 + (z0 + z) / (1 - a (z0 + z))) of t*. The columns
    share their resamples, so a hundred metrics cost one matrix product; one column gives the same as
    ``scipy.stats.bootstrap(method="BCa")`` with the same seed. A constant column has no width.
    """
    n, m = columns.shape
    if n < 2:
        return [None] * m
    centred = columns - columns.mean(axis=0)
    if not (columns != columns[0]).any():
        return [(float(value), float(value)) for value in columns[0]]
    means = np.empty((resamples, m))
    rng = np.random.default_rng(seed)
    for start in range(0, resamples, CHUNK):
        picks = rng.integers(0, n, (min(CHUNK, resamples - start), n))
        counts = np.bincount((picks + n * np.arange(len(picks))[:, None]).ravel(), minlength=n * len(picks))
        means[start:start + len(picks)] = counts.reshape(len(picks), n) @ centred / n
    noise = 1e-12 * np.abs(centred).max(axis=0, initial=0.0)  # rounding must not break ties with the mean
    below = ((means < -noise).sum(axis=0) + (means <= noise).sum(axis=0)) / (2 * resamples)
    power2, power3 = (centred**2).sum(axis=0), -(centred**3).sum(axis=0)
    intervals: list[Interval] = []
    for j, mean in enumerate(columns.mean(axis=0)):
        if power2[j] <= (1e-12 * max(1.0, abs(mean))) ** 2 * n:
            intervals.append((float(mean), float(mean)))
            continue
        z0, a = scipy.special.ndtri(below[j]), -power3[j] / (6 * power2[j] ** 1.5)
        z = z0 + scipy.special.ndtri([(1 - level) / 2, (1 + level) / 2])
        low, high = np.quantile(means[:, j], scipy.special.ndtr(z0 + z / (1 - a * z))) + mean
        intervals.append((float(low), float(high)))
    return intervals
