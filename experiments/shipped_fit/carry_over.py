"""Transfer of a fit to other kinds of data: each kind left out, cross-fitted with the others, and by itself.

    python experiments/shipped_fit/carry_over.py WORDS... data=... data=... tested data=...

Words before the first `data=` hold for all data sets, words behind one for it. Those behind `tested` are never fitted
on. Each row is compared with the ranking by weights: paired over groups of questions, p after Holm over three metrics.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from memlab.data.dataset import groups
from memlab.evaluate.contrast import Contrast, measure
from memlab.evaluate.retrieval import retrieval
from memlab.evaluate.statistics import holm
from memlab.learn.ranker.__main__ import first_stage
from memlab.learn.ranker.cross_fit import Fits, Learnable, apply_fits, together, without
from memlab.learn.ranker.model import RankModel
from memlab.learn.ranker.rescore import leading_turns, mix, rescore
from memlab.learn.ranker.stage import LearnedScore
from memlab.pipeline.tables import Tables

SHOWN = ("turn/ndcg@10", "turn/recall@10", "session/recall_any@1", "session/recall_all@5", "session/recall_all@10")
TESTED = ("turn/ndcg@10", "session/recall_any@1", "session/recall_all@10")


@dataclasses.dataclass(frozen=True)
class World:
    """A data set after the first step of learned fusion."""

    name: str
    score: LearnedScore
    tables: Tables
    rows: Learnable

    def scored(self, fits: Fits | None) -> pl.DataFrame:
        """Return the metrics of each question by these fits; by weights alone without fits."""
        ranking = self.tables["ranking"]
        if fits is not None:
            home = fits[0][1].recipe.home
            scores = mix(self.rows.frame, apply_fits(fits, self.rows.frame), home)
            leads = leading_turns(self.rows.frame, self.rows.session, scores, home)
            ranking = rescore(ranking, self.rows.frame, scores, self.score.depth, leads)
        tables = self.tables.updated({"ranking": ranking})
        group = groups(tables["questions"], tables["evidence"], tables["turns"], self.score.by)
        scored = tables["gold"].filter("scored")
        return retrieval(tables).join(group, on="question").join(scored, on="question", how="semi")


def world(words: Sequence[str]) -> World:
    """Load a data set and rank it by weights."""
    score, arm, tables = first_stage(words)
    place = next((word for word in words if word.startswith("data.path=")), "")
    return World(f"{arm.dataset.name} {place.rpartition('/')[2]}".strip(), score, tables, score.learnable(tables))


def parts(words: Sequence[str]) -> list[list[str]]:
    """Return the words of each data set: those before the first, and its own."""
    at = [place for place, word in enumerate(words) if word.startswith("data=")]
    return [[*words[:at[0]], *words[start:end]] for start, end in zip(at, [*at[1:], len(words)])]


def without_fold(rows: Learnable, fold: int) -> Learnable:
    """Return the rows that a fit for this fold may learn from."""
    kept = without(rows.label, rows.fold, rows.shared, fold)
    arrays = {name: getattr(rows, name)[kept] for name in ("label", "session", "fold", "dataset")}
    return Learnable(frame=rows.frame.filter(kept), shared=rows.shared[:, kept], **arrays)


def fits_of(tested: World, learned: Sequence[World]) -> Iterator[tuple[str, Fits | None]]:
    """Yield what the fits were made on, and the fits for all rows of ``tested``."""
    depth, recipe = tested.score.depth, tested.score.recipe
    away = dataclasses.replace(recipe, home=False)
    everything, joint = np.ones(len(tested.rows.fold), np.bool_), list[tuple[np.ndarray, RankModel]]()
    others = [other.rows for other in learned if other is not tested]
    yield "weights", None
    if others:
        yield "others", [(everything, together(others).fit(depth, away))]
    if tested in learned:
        yield "own", tested.rows.crossfit(depth, recipe)
        for fold in np.unique(tested.rows.fold):
            seen = together([*others, without_fold(tested.rows, fold)])
            joint.append((tested.rows.fold == fold, seen.fit(depth, away)))
        yield "joint", joint


def main(words: list[str]) -> None:
    """Print the metrics of each fit on each data set, and its differences from the ranking by weights."""
    at = words.index("tested") if "tested" in words else len(words)
    everything = [world(own) for own in parts([word for word in words if word != "tested"])]
    learned = everything[:sum(word.startswith("data=") for word in words[:at])]
    for tested in everything:
        weights = None
        for name, fits in fits_of(tested, learned):
            mine = tested.scored(fits)
            line = f"{tested.name}, {name}: " + " ".join(f"{mine[metric].mean():.3f}" for metric in SHOWN)
            weights = mine if weights is None else weights
            rows = [measure(Contrast(name, "weights", metric), mine, weights, alpha=0.05, seed=0) for metric in TESTED]
            for row, p in zip(rows, holm([1.0 if row["p"] is None else row["p"] for row in rows])):
                line += f"; {100 * row['difference']:+.1f}, {row['wins']} : {row['losses']}, p = {p:.3f}"
            print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
