"""Gain of a few labels of one's own over the shipped fit: trees behind its own, cross-fitted.

    PYTHONPATH=experiments python experiments/shipped_fit/own_labels.py data=realmem data.path=FOLDER

Of the other folds so many questions with evidence are drawn by seed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from memlab.evaluate.contrast import Contrast, measure
from memlab.evaluate.statistics import holm
from memlab.learn.ranker.cross_fit import without
from memlab.learn.ranker.model import RankModel, fit, load
from memlab.learn.ranker.stage import SHIPPED
from shipped_fit.carry_over import SHOWN, TESTED, World, world

SIZES = (20, 40, 100, 200)


def fits(tested: World, start: RankModel, size: int) -> list[tuple[np.ndarray, RankModel]]:
    """Return the rows of each fold, and the shipped fit with trees of ``size`` questions of other folds."""
    rows, made = tested.rows, []
    question = rows.frame["question"].to_numpy()
    for fold in np.unique(rows.fold):
        usable = without(rows.label, rows.fold, rows.shared, fold)
        asked = np.unique(question[usable & (rows.label > 0)])
        drawn = np.random.default_rng([0, int(fold)]).choice(asked, min(size, len(asked)), replace=False)
        model = fit(rows.frame, rows.label, tested.score.depth, tested.score.recipe, usable & np.isin(question, drawn),
                    start=start)
        made.append((rows.fold == fold, model))
    return made


def main(words: Sequence[str]) -> None:
    """Print the metrics of the shipped fit, and of it with trees of more and more questions."""
    tested, start = world(words), load(SHIPPED)
    everything = np.ones(len(tested.rows.fold), np.bool_)
    shipped = tested.scored([(everything, start)])
    print(f"{tested.name}, shipped: " + " ".join(f"{shipped[metric].mean():.3f}" for metric in SHOWN), flush=True)
    for size in SIZES:
        mine = tested.scored(fits(tested, start, size))
        line = f"{size} questions: " + " ".join(f"{mine[metric].mean():.3f}" for metric in SHOWN)
        rows = [measure(Contrast("own", "shipped", metric), mine, shipped, alpha=0.05, seed=0) for metric in TESTED]
        for row, p in zip(rows, holm([1.0 if row["p"] is None else row["p"] for row in rows])):
            line += f"; {100 * row['difference']:+.1f}, {row['wins']} : {row['losses']}, p = {p:.3f}"
        print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
