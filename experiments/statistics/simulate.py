"""Size and power of three tests of a paired difference, by simulation over conversations.

    python experiments/statistics/simulate.py [draws]

Each draw gives every question of a conversation a win, a loss or neither. 12 % of the questions differ; the true effect
of a conversation is the overall effect plus a normal deviation. The tests: the sign-flip test over the conversations'
mean differences, Student's t over the same means, and memlab's test (t with CR2 variance and Bell-McCaffrey degrees of
freedom on the mean over questions). Prints a Markdown table of rejection rates in the right direction for power, in
any for size.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from memlab.evaluate.statistics import degrees_of_freedom

SIZES = {4: (197, 105, 193, 260), 6: (197, 105, 193, 260, 158, 196),
         10: (197, 105, 193, 260, 158, 196, 197, 105, 193, 260), 20: (12,) * 20}
"""Questions that count: those of LoCoMo's development conversations (cut or repeated), and 20 lives of 12."""
DISCORDANCE = 0.12
ALPHAS = (0.05, 0.05 / 3)
Draws = NDArray[np.float64]


def draw(sizes: NDArray[np.int64], effect: float, between: float, draws: int, rng: np.random.Generator) -> Draws:
    """Return the sums of wins less losses per conversation: (draws, conversations)."""
    effects = effect + rng.normal(0, between, (draws, len(sizes)))
    effects = np.clip(effects, -DISCORDANCE, DISCORDANCE)
    differing = rng.binomial(sizes, DISCORDANCE, (draws, len(sizes)))
    wins = rng.binomial(differing, (1 + effects / DISCORDANCE) / 2)
    return (2 * wins - differing).astype(np.float64)


def sign_flip(sums: Draws, sizes: NDArray[np.int64]) -> tuple[Draws, Draws]:
    """Return (p, estimate) of each draw: all sign patterns up to 10 conversations, else 2,047 random ones."""
    means, n = sums / sizes, len(sizes)
    if n <= 10:
        signs = 1 - 2 * (np.arange(2**n)[:, None] >> np.arange(n) & 1)
    else:
        signs = np.vstack([np.ones((1, n), int), 1 - 2 * np.random.default_rng(1).integers(0, 2, (2047, n))])
    observed = np.abs(means.sum(axis=1)) - 1e-12
    p = np.array([(np.abs(part @ signs.T) >= at[:, None]).mean(axis=1) for part, at in zip(
        np.array_split(means, 20), np.array_split(observed, 20))], dtype=object)
    return np.concatenate(list(p)).astype(np.float64), means.mean(axis=1)


def cluster_t(sums: Draws, sizes: NDArray[np.int64]) -> tuple[Draws, Draws]:
    """Return (p, estimate) of Student's t over the conversations' means."""
    result = stats.ttest_1samp(sums / sizes, 0, axis=1)
    return np.nan_to_num(result.pvalue, nan=1.0), (sums / sizes).mean(axis=1)


def cr2(sums: Draws, sizes: NDArray[np.int64]) -> tuple[Draws, Draws]:
    """Return (p, estimate) of memlab's test; it needs the sums of the conversations alone."""
    n = sizes.sum()
    mean = sums.sum(axis=1) / n
    residuals = sums - sizes * mean[:, None]
    error = np.sqrt((residuals**2 / (1 - sizes / n)).sum(axis=1)) / n
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * stats.t.sf(np.abs(mean) / error, degrees_of_freedom(sizes.astype(np.float64)))
    return np.where(error > 0, p, 1.0), mean


TESTS: dict[str, Callable[..., tuple[Draws, Draws]]] = {
    "sign-flip over means": sign_flip, "t over means": cluster_t, "t over groups (CR2)": cr2}


def main(draws: int = 5000) -> None:
    """Print the table."""
    print("| conversations | effect varies by | test | size .05 | size .0167 | power, 3 points, .05 | 3 points, .0167 "
          "| 6 points, .05 | 6 points, .0167 |\n|--:|--:|---|--:|--:|--:|--:|--:|--:|")
    rng = np.random.default_rng(0)
    for groups, sizes in SIZES.items():
        for between in (0.0, 0.02, 0.04):
            samples = [draw(np.array(sizes), effect, between, draws, rng) for effect in (0.0, 0.03, 0.06)]
            for name, test in TESTS.items():
                rates = []
                for effect, sums in zip((0.0, 0.03, 0.06), samples):
                    p, estimate = test(sums, np.array(sizes))
                    rates += [float(((p <= alpha) & ((estimate > 0) | (effect == 0))).mean()) for alpha in ALPHAS]
                cells = " | ".join(f"{rate:.3f}" if i < 2 else f"{rate:.2f}" for i, rate in enumerate(rates))
                print(f"| {groups} | {100 * between:g} points | {name} | {cells} |")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
