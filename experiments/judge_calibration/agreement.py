"""Agreement of a judge's verdicts with the truth: sensitivity, specificity and Cohen's kappa."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memlab.evaluate.statistics import LEVEL, Interval, wilson

Share = dict[str, float | int | None]
"""A share in a report: value, low, high (95 %), n; value, low and high are null if n is 0."""


class Pair(NamedTuple):
    """The truth and the verdict on it; pairs of one group (a question) depend on one another."""

    group: int
    truth: bool
    verdict: bool


def share(hits: int, n: int) -> Share:
    """Return a share with its Wilson interval."""
    low, high = wilson(hits, n) or (None, None)
    return {"value": hits / n if n else None, "low": low, "high": high, "n": n}


def sensitivity(pairs: Sequence[Pair]) -> Share:
    """Return the share of right answers that are called right."""
    return share(sum(p.verdict for p in pairs if p.truth), sum(p.truth for p in pairs))


def specificity(pairs: Sequence[Pair]) -> Share:
    """Return the share of wrong answers that are called wrong."""
    return share(sum(not p.verdict for p in pairs if not p.truth), sum(not p.truth for p in pairs))


def kappa(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Cohen's kappa (Educ. Psychol. Meas. 1960) of tables (..., 4) that count (yes yes, yes no, no yes, no no).

    (observed - expected) / (1 - expected) agreement, expected from the margins; NaN if all truths and all verdicts are
    the same.

    >>> float(kappa(np.array([20.0, 5, 10, 15])))
    0.4
    """
    a, b, c, d = np.moveaxis(np.asarray(table, np.float64), -1, 0)
    n = a + b + c + d
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = ((a + b) * (a + c) + (c + d) * (b + d)) / n**2
        return np.round(((a + d) / n - expected) / (1 - expected), 12)


def kappa_of(pairs: Sequence[Pair], seed: int = 0, resamples: int = 2_000, level: float = LEVEL) -> Share:
    """Return kappa of truth and verdicts, with the percentile bootstrap interval over groups; null if undefined.

    2,000 resamples determine the bounds to about .005. Whole questions are drawn, because the answers to one question
    are not independent. Resamples in which kappa is undefined are left out.
    """
    empty: Share = {"value": None, "low": None, "high": None, "n": len(pairs)}
    if not pairs:
        return empty
    _, at = np.unique([p.group for p in pairs], return_inverse=True)
    cell = np.array([(0 if p.verdict else 1) if p.truth else (2 if p.verdict else 3) for p in pairs])
    groups = int(at.max()) + 1
    counts = np.bincount(at * 4 + cell, minlength=groups * 4).reshape(groups, 4).astype(np.float64)
    value = float(kappa(counts.sum(axis=0)))
    if np.isnan(value):
        return empty
    low, high = _bootstrap(counts, seed, resamples, level) or (None, None)
    return {**empty, "value": value, "low": low, "high": high}


def _bootstrap(counts: NDArray[np.float64], seed: int, resamples: int, level: float) -> Interval:
    if len(counts) < 2:
        return None
    weights = np.random.default_rng(seed).multinomial(len(counts), np.full(len(counts), 1 / len(counts)), resamples)
    kappas = kappa(weights @ counts)
    kappas = kappas[~np.isnan(kappas)]
    if not len(kappas):
        return None
    low, high = np.quantile(kappas, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def agreement(pairs: Sequence[Pair], seed: int = 0) -> dict[str, Share]:
    """Return kappa, sensitivity and specificity of verdicts."""
    return {"kappa": kappa_of(pairs, seed), "sensitivity": sensitivity(pairs), "specificity": specificity(pairs)}
