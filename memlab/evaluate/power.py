"""Power of a comparison and its smallest significant difference.

Power is computed for a difference named before the run, never for the observed one, which would only restate p.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from memlab.evaluate.statistics import smallest_p

WANTED = 0.8
"""Power at which a difference counts as detectable."""


def fewest_wins(discordant: NDArray[np.int64], alpha: float) -> NDArray[np.int64]:
    """Return the fewest wins among so many discordant questions with p <= alpha by exact McNemar; (m,) -> (m,).

    One more than ``discordant`` where no number of wins suffices.

    >>> fewest_wins(np.array([5, 10, 50]), .05)
    array([ 6,  9, 33])
    """
    wins = stats.binom.isf(alpha / 2, discordant, 0.5).astype(np.int64)  # smallest x with P(X > x) <= alpha / 2
    return np.asarray(wins + 1, np.int64)


def smallest_significant(n: int, discordant: int, alpha: float) -> float | None:
    """Return the smallest net win, as a share of n questions, that exact McNemar finds significant, or None.

    >>> [smallest_significant(500, d, .05) for d in (10, 20, 50, 100)]
    [0.016, 0.02, 0.032, 0.044]
    """
    wins = int(fewest_wins(np.array([discordant]), alpha)[0])
    return None if n == 0 or wins > discordant else (2 * wins - discordant) / n


def mcnemar_power(n: int, difference: float, discordance: float, alpha: float) -> float:
    """Return the power of exact McNemar on n questions for a true net win of ``difference`` (a share, above 0).

    ``discordance`` is the share of questions where the arms differ, at least ``difference``. The number of
    discordant questions is Binomial(n, discordance), the wins among them Binomial of it.
    """
    discordance = min(1.0, max(discordance, difference))
    if n == 0 or discordance <= 0:
        return 0.0
    m = np.arange(n + 1)
    likely = stats.binom.pmf(m, n, discordance)
    m, likely = m[likely > 1e-12], likely[likely > 1e-12]
    chance = stats.binom.sf(fewest_wins(m, alpha) - 1, m, (discordance + difference) / (2 * discordance))
    return float(min(1.0, (likely * chance).sum()))


def t_power(n: int, difference: float, deviation: float, alpha: float) -> float:
    """Return the power of a paired t-test on n differences of that standard deviation for a true mean ``difference``.

    It approximates the sign-flip test; 0 where the smallest possible p of a sign-flip test on n units exceeds alpha.
    """
    if n < 2 or smallest_p(n) > alpha:
        return 0.0
    if deviation <= 0:
        return 1.0 if difference > 0 else 0.0
    return float(stats.nct.sf(stats.t.isf(alpha / 2, n - 1), n - 1, difference / deviation * np.sqrt(n)))


def detectable(power: Callable[[float], float], largest: float) -> float | None:
    """Return the smallest difference up to ``largest`` that a rising ``power`` finds in 80 % of runs, or None.

    >>> round(detectable(lambda d: t_power(100, d, 1.0, .05), 2.0), 3)
    0.283
    """
    if not largest > 0 or power(largest) < WANTED:
        return None
    low, high = 0.0, largest
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= WANTED else (middle, high)
    return high
