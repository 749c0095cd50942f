"""The mean of values in independent groups: one procedure for its standard error, its interval and its p.

The linear model with an intercept alone, the CR2 variance and the degrees of freedom of Bell and McCaffrey (Survey
Methodology 2002; Imbens and Kolesar, Review of Economics and Statistics 2016, with independent errors as the working
model). It holds its size with few groups of unequal size, where the usual cluster-robust variance rejects too often.
With groups of one value it is Student's t, with equal groups Student's t over the means of the groups.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

from memlab.evaluate.averages import mean
from memlab.evaluate.intervals import LEVEL, Interval
from memlab.evaluate.statistics import Values


@dataclass(frozen=True)
class GroupedMean:
    """A mean over values, its standard error and degrees of freedom; both are None with fewer than two groups."""

    value: float
    error: float | None
    df: float | None

    @property
    def p(self) -> float | None:
        """Return the two-sided p of a true mean of 0; None where the values do not spread, so that t has no meaning.

        1 for values that are all 0.
        """
        if self.error is None or self.df is None:
            return None
        if self.error == 0:
            return 1.0 if self.value == 0 else None
        return float(2 * scipy.special.stdtr(self.df, -abs(self.value) / self.error))

    def interval(self, level: float = LEVEL) -> Interval:
        """Return the interval that excludes 0 exactly where ``p`` < 1 - level."""
        if self.error is None or self.df is None or self.error == 0:
            return None
        half = float(scipy.special.stdtrit(self.df, (1 + level) / 2)) * self.error
        return self.value - half, self.value + half


def grouped_mean(values: Values, groups: NDArray[np.int64]) -> GroupedMean:
    """Return the mean of values (n,) whose groups (n,) are independent of each other.

    With n_g values in group g and S_g the sum of their residuals, the squared standard error is
    sum S_g^2 / (1 - n_g / n) / n^2, and the degrees of freedom are n^2 / (sum n_g^2 + sum over pairs of different
    groups of (n_g n_h / n)^2 / ((1 - n_g / n) (1 - n_h / n))).
    """
    average = mean(values)
    if average is None:
        raise ValueError("a mean needs at least one value")
    names, where = np.unique(groups, return_inverse=True)
    n = len(values)
    if len(names) < 2:
        return GroupedMean(average, None, None)
    sums = group_sums(values, groups) - np.bincount(where) * average
    if np.abs(values - average).max() <= 1e-12 * max(1.0, abs(average)):  # no spread but rounding
        sums = np.zeros(len(names))
    sizes = np.bincount(where).astype(np.float64)
    return GroupedMean(average, math.sqrt(math.fsum(sums**2 / (1 - sizes / n))) / n, degrees_of_freedom(sizes))


def degrees_of_freedom(sizes: Values) -> float:
    """Return the degrees of freedom of a mean over groups of these sizes (groups,), at least two.

    >>> degrees_of_freedom(np.array([20.0] * 6)), round(degrees_of_freedom(np.array([300.0, 20, 20, 20])), 2)
    (5.0, 1.27)
    """
    n = float(sizes.sum())
    weights = sizes**2 / (n * (1 - sizes / n))
    pairs = weights.sum() ** 2 - (weights**2).sum()
    return float(n**2 / ((sizes**2).sum() + pairs))


def group_sums(values: Values, groups: NDArray[np.int64]) -> Values:
    """Sum the values (n,) of each group, in the order of the groups' numbers; the order of values does not matter.

    >>> group_sums(np.array([1.0, 0.5, 4.0]), np.array([7, 7, 2]))
    array([4. , 1.5])
    """
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order])) + 1
    return np.array([math.fsum(part) for part in np.split(values[order], starts)])
