"""Paired tests, Holm's correction, intervals, means over groups, and the power of a test. All p-values are two-sided.

Intervals, of 95 % by default, are None where they are undefined (fewer than two observations).

The predicted direction is checked by the sign of the difference, not by halving p.

The mean of values in independent groups: one procedure for its standard error, its interval and its p.

The linear model with an intercept alone, the CR2 variance and the degrees of freedom of Bell and McCaffrey (Survey
Methodology 2002; Imbens and Kolesar, Review of Economics and Statistics 2016, with independent errors as the working
model). It holds its size with few groups of unequal size, where the usual cluster-robust variance rejects too often.
With groups of one value it is Student's t, with equal groups Student's t over the means of the groups.

Power is computed for a difference named before the run, never for the observed one, which would only restate p.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

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
    for j, middle in enumerate(columns.mean(axis=0)):
        if power2[j] <= (1e-12 * max(1.0, abs(middle))) ** 2 * n:
            intervals.append((float(middle), float(middle)))
            continue
        z0, a = scipy.special.ndtri(below[j]), -power3[j] / (6 * power2[j] ** 1.5)
        z = z0 + scipy.special.ndtri([(1 - level) / 2, (1 + level) / 2])
        low, high = np.quantile(means[:, j], scipy.special.ndtr(z0 + z / (1 - a * z))) + middle
        intervals.append((float(low), float(high)))
    return intervals


Values = NDArray[np.float64]

RESAMPLES = 9_999
"""Random sign flips; the smallest p that they can give is 1 / 10,000."""
CHUNK = 1_000
"""Resamples held in memory at once."""


def mean(values: Iterable[float]) -> float | None:
    """Return the mean by the exactly rounded sum, which does not depend on order; None for no values.

    >>> mean([1e16, 1.0, -1e16])
    0.3333333333333333
    """
    listed = list(values)
    return math.fsum(listed) / len(listed) if listed else None


def ratio_parts(numerators: Values, denominators: Values) -> Values:
    """Return values, (n,), whose mean is the ratio of two sums, and whose variance is that of the ratio.

    r + (x - r y) / mean(y), the ratio linearised (Taylor; Cochran, Sampling Techniques, 1977, chapter 6), so that a
    pooled share has the intervals and paired tests of a mean. NaN where the denominators are 0.

    >>> ratio_parts(np.array([1.0, 0.0]), np.array([2.0, 2.0]))
    array([0.5, 0. ])
    """
    if not denominators.sum():
        return np.full(len(numerators), np.nan)
    ratio = numerators.sum() / denominators.sum()
    parts: Values = ratio + (numerators - ratio * denominators) / denominators.mean()
    return parts


def auroc_parts(scores: Values, positive: NDArray[np.bool_]) -> Values:
    """Return values, (n,), whose mean is the area under the ROC curve, and whose variance is DeLong's.

    The area is the chance that a positive case has the higher score, ties by half; each case has the share of the
    other kind that it is rightly ordered with (DeLong, DeLong, Clarke-Pearson, Biometrics 1988). NaN with one kind.

    >>> auroc_parts(np.array([0.9, 0.2, 0.1]), np.array([True, False, True])).mean()
    np.float64(0.5)
    """
    n, ones = len(scores), int(positive.sum())
    if ones in (0, n):
        return np.full(n, np.nan)
    up, down = np.sort(scores[positive]), np.sort(scores[~positive])
    below = (np.searchsorted(down, scores) + np.searchsorted(down, scores, "right")) / 2 / len(down)
    above = 1 - (np.searchsorted(up, scores) + np.searchsorted(up, scores, "right")) / 2 / len(up)
    area = below[positive].mean()
    parts: Values = np.where(positive, area + (below - area) * n / ones, area + (above - area) * n / (n - ones))
    return parts


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


WANTED = 0.8
"""Power at which a difference counts as detectable."""


def smallest_significant(error: float, df: float, alpha: float) -> float:
    """Return the smallest difference with p <= alpha, at this standard error."""
    return float(-scipy.special.stdtrit(df, alpha / 2)) * error


def t_power(difference: float, error: float, df: float, alpha: float) -> float:
    """Return the chance of p <= alpha, in the right direction, for a true ``difference`` above 0.

    >>> round(t_power(.06, .0174, 4.7, .05), 2)
    0.77
    >>> t_power(.03, .0002, 1e5, .05)
    1.0
    """
    centre, critical = difference / error, -scipy.special.stdtrit(df, alpha / 2)
    power = float(1 - scipy.special.nctdtr(df, centre, critical))
    # far from 0 the noncentral t is undefined in floating point, and the normal distribution has its value
    return power if math.isfinite(power) else float(scipy.special.ndtr(centre - critical))


def smallest_detectable(error: float, df: float, alpha: float) -> float:
    """Return the true difference that is found in 80 % of runs."""
    critical = smallest_significant(error, df, alpha)
    return float(scipy.optimize.brentq(lambda d: t_power(d, error, df, alpha) - WANTED, critical / 10, 10 * critical))


MOST_FACTOR = 1e4
"""More observations than this times those at hand are no advice."""


def interval_error(low: float, high: float, df: float) -> float:
    """Return the standard error behind a 95 % interval of t."""
    return (high - low) / 2 / float(scipy.special.stdtrit(df, (1 + LEVEL) / 2))


def more_observations(difference: float, error: float, df: float, n: int, alpha: float) -> int | None:
    """Return how many more observations like these n find a true ``difference`` in 80 % of runs; 0 if n are enough.

    The ``error`` of n falls with the root of their number, and the degrees of freedom grow with it. None where
    ``MOST_FACTOR`` n are too few.

    >>> more_observations(.03, .025, 99, 100, .05)
    448
    """
    def lack(log_factor: float) -> float:
        factor = math.exp(log_factor)
        return t_power(difference, error / math.sqrt(factor), df * factor, alpha) - WANTED

    if lack(0.0) >= 0:
        return 0
    if not lack(math.log(MOST_FACTOR)) >= 0:
        return None
    return math.ceil(n * (math.exp(float(scipy.optimize.brentq(lack, 0.0, math.log(MOST_FACTOR)))) - 1))


@dataclass(frozen=True)
class Assumptions:
    """Assumptions of a power plan: how much the questions, and the groups, differ in a contrast.

    ``discordance`` is the share of questions on which two arms differ, ``between`` the standard deviation of the true
    effect between groups of several questions. On LoCoMo, contrasts of one stage differed on 3 to 20 % of the
    questions, and their effect hardly varied between conversations (less than .02).
    """

    discordance: float = 0.12
    between: float = 0.02

    def error(self, sizes: Values, difference: float) -> float:
        """Return the standard error of a true difference in a 0/1 metric over groups of these sizes (groups,)."""
        n = float(sizes.sum())
        within = max(self.discordance, difference) - difference**2
        shared = self.between**2 * float((sizes[sizes > 1] ** 2).sum())
        return math.sqrt(within * n + shared) / n


def planned_power(sizes: Values, difference: float, alpha: float, given: Assumptions = Assumptions()) -> float | None:
    """Return the power of a contrast before its run, over groups of these sizes; None with fewer than two groups."""
    if len(sizes) < 2:
        return None
    return t_power(difference, given.error(sizes, difference), degrees_of_freedom(sizes), alpha)


def planned_detectable(sizes: Values, alpha: float, given: Assumptions = Assumptions()) -> float | None:
    """Return the smallest difference, to .1 points, with a planned power of 80 %; None where none below 1 has it."""
    for difference in np.arange(1, 1000) / 1000:
        if (planned_power(sizes, float(difference), alpha, given) or 0.0) >= WANTED:
            return float(difference)
    return None
