"""Agreement of two sets of yes and no: sensitivity, specificity, and Cohen's kappa with an interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memlab.evaluate.intervals import LEVEL, Interval, wilson

Share = dict[str, float | int | None]
"""A share as reports hold it: value, low, high (95 %), n; null where n is 0."""


class Pair(NamedTuple):
    """What is known to be so and what was said of it; pairs of one group (a question) depend on one another."""

    group: int
    truth: bool
    said: bool


def share(hits: int, n: int) -> Share:
    """A share with its Wilson interval."""
    interval = wilson(hits, n)
    return {"value": hits / n if n else None, "low": interval[0] if interval else None,
            "high": interval[1] if interval else None, "n": n}


def sensitivity(pairs: Sequence[Pair]) -> Share:
    """Of what is right, the share called right."""
    return share(sum(p.said for p in pairs if p.truth), sum(p.truth for p in pairs))


def specificity(pairs: Sequence[Pair]) -> Share:
    """Of what is wrong, the share called wrong."""
    return share(sum(not p.said for p in pairs if not p.truth), sum(not p.truth for p in pairs))


def kappa(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cohen's kappa (Educ. Psychol. Meas. 1960) of tables (..., 4) that count (yes yes, yes no, no yes, no no).

    (observed - expected) / (1 - expected) agreement, expected from the margins; NaN where both sides say the same
    one thing throughout.

    >>> float(kappa(np.array([20.0, 5, 10, 15])))
    0.4
    """
    a, b, c, d = np.moveaxis(np.asarray(table, np.float64), -1, 0)
    n = a + b + c + d
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = ((a + b) * (a + c) + (c + d) * (b + d)) / n**2
        return np.round(((a + d) / n - expected) / (1 - expected), 12)


def kappa_of(pairs: Sequence[Pair], seed: int = 0, resamples: int = 2_000, level: float = LEVEL) -> Share:
    """Kappa of truth and verdicts, with the percentile bootstrap interval over whole groups; null if undefined.

    2,000 resamples settle the bounds to about .005, and whole questions are drawn because the answers made for one
    are not independent. Resamples in which kappa is undefined are left out.
    """
    empty: Share = {"value": None, "low": None, "high": None, "n": len(pairs)}
    if not pairs:
        return empty
    _, at = np.unique([p.group for p in pairs], return_inverse=True)
    cell = np.array([(0 if p.said else 1) if p.truth else (2 if p.said else 3) for p in pairs])
    groups = int(at.max()) + 1
    counts = np.bincount(at * 4 + cell, minlength=groups * 4).reshape(groups, 4).astype(np.float64)
    value = float(kappa(counts.sum(axis=0)))
    if np.isnan(value):
        return empty
    interval = _bootstrap(counts, seed, resamples, level)
    return {**empty, "value": value, "low": interval[0] if interval else None,
            "high": interval[1] if interval else None}


def _bootstrap(counts: NDArray[np.float64], seed: int, resamples: int, level: float) -> Interval:
    if len(counts) < 2:
        return None
    weights = np.random.default_rng(seed).multinomial(len(counts), np.full(len(counts), 1 / len(counts)), resamples)
    drawn = kappa(weights @ counts)
    drawn = drawn[~np.isnan(drawn)]
    if not len(drawn):
        return None
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
