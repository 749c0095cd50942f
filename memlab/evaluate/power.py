"""Power of the test over groups, and the smallest difference that it can show.

Power is computed for a difference named before the run, never for the observed one, which would only restate p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are loaded when they are used

from memlab.evaluate.grouped_mean import degrees_of_freedom
from memlab.evaluate.statistics import Values

WANTED = 0.8
"""Power at which a difference counts as detectable."""


def smallest_significant(error: float, df: float, alpha: float) -> float:
    """Return the smallest difference with p <= alpha, at this standard error."""
    return float(-scipy.special.stdtrit(df, alpha / 2)) * error


def t_power(difference: float, error: float, df: float, alpha: float) -> float:
    """Return the chance of p <= alpha, in the right direction, for a true ``difference`` above 0.

    >>> round(t_power(.06, .0174, 4.7, .05), 2)
    0.77
    """
    return float(1 - scipy.special.nctdtr(df, difference / error, -scipy.special.stdtrit(df, alpha / 2)))


def smallest_detectable(error: float, df: float, alpha: float) -> float:
    """Return the true difference that is found in 80 % of runs."""
    critical = smallest_significant(error, df, alpha)
    return float(scipy.optimize.brentq(lambda d: t_power(d, error, df, alpha) - WANTED, critical / 10, 10 * critical))


@dataclass(frozen=True)
class Assumptions:
    """What a plan takes as given before the run: how much the questions, and the groups, differ in a contrast.

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
