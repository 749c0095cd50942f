"""Session model: a conditional logit over the sessions of a question, and a ranking of turns in the order it wants.

The conditional logit (McFadden 1974) scores a session by weighted features: the learned scores of its turns, and the
best turn's z-score in each lane. The weights are shrunk towards the order by the best learned turn. A second one orders
the sessions behind the first by their two best learned turns and their likeness to the first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray
from pydantic import model_validator

from memlab.learn.ranker.features import PAIR
from memlab.learn.ranker.signals import Bools, Floats, Groups, Ints, dense_numbers, session_keys, zscores
from memlab.learn.ranker.trees import Numbers
from memlab.learn.ranker.words import Terms, likeness
from memlab.pipeline.stage import Names, stage
from memlab.pipeline.tables import DIGITS
from memlab.stages.rank.rerank import below
from memlab.stages.rank.units import rank_units
from memlab.support.errors import MemlabError

SHRINKAGE = 3.0
"""Penalty on the squared distance of a weight from its start, beside a loss summed over questions."""

START = 1.5
"""Weight, in standard deviations, that "best learned" is shrunk towards, all others towards 0: a fit on it alone."""

NEIGHBOURS = (" -2", " -1", " +1", " +2")

KEY = ["question", "session"]

BEST = "row of best turn"


@stage
class SessionModel:
    """Weights of the features of ``session_table`` or ``behind_table``, standardised by ``mean`` and ``scale``."""

    features: Names
    mean: Numbers
    scale: Numbers
    weights: Numbers

    @model_validator(mode="after")
    def _fits_together(self) -> SessionModel:
        if len({len(self.features), len(self.mean), len(self.scale), len(self.weights)}) != 1 or not self.features:
            raise ValueError("the lists of the session model do not fit together")
        if not all(map(math.isfinite, self.mean + self.scale + self.weights)) or min(self.scale) <= 0:
            raise ValueError("the session model holds an impossible number")
        return self


def need_features(names: Sequence[str], table: pl.DataFrame, what: str) -> None:
    """Raise MemlabError unless the table has all features of a fit; ``what`` names them in the message."""
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise MemlabError(f"the fit needs {len(missing)} {what} that this ranking lacks (the first: '{missing[0]}')",
                          where="learn/ranker", fix="use the searches that it was fitted with, or fit anew")


def session_table(frame: pl.DataFrame, session: Ints, scores: Floats) -> pl.DataFrame:
    """Return one row per (question, session) of the rows of ``features``, in the order of the rows.

    ``session`` (n,) and ``scores`` (n,) are the rows' session numbers and learned scores. Features: z-score of the best
    turn, of the second (the only) one, the sum of the first three above 0, and the best z-score in each lane. The
    column ``BEST`` is no feature.
    """
    lanes = [c for c in frame.columns if c.startswith("z ") and not c.endswith(NEIGHBOURS)]
    question = dense_numbers(frame["question"])
    learned = zscores(scores, question)
    groups = Groups(dense_numbers(pl.Series(session_keys(question, session))))
    order = groups.descending(learned)
    best = order[groups.start]
    first_three = [groups.nth(learned[order], n, np.nan) for n in range(3)]
    columns = {
        BEST: best, "best learned": first_three[0],
        "second learned": np.fmin(*first_three[:2]),  # the only one, if there is no second
        "three learned": np.nansum(np.maximum(first_three, 0.0), axis=0),
        **{f"best {lane}": np.maximum.reduceat(frame[lane].to_numpy()[order], groups.start).astype(np.float64)
           for lane in lanes}}
    table = pl.DataFrame(columns).select(frame["question"].gather(best), pl.Series("session", session[best]), pl.all())
    return table[np.argsort(np.minimum.reduceat(order, groups.start))]


def session_places(model: SessionModel, table: pl.DataFrame) -> Ints:
    """Return the place of each session in its question by ``session_values``, from 0, (s,).

    Equal values keep the order of their best turns.
    """
    ordered = session_values(model, table).with_columns(table["best learned", BEST]).with_row_index("\0row").sort(
        "question", "value", "best learned", BEST, descending=[False, True, True, False])
    placed = ordered.with_columns(pl.int_range(pl.len()).over("question").alias("place")).sort("\0row")
    return placed["place"].to_numpy(writable=True)


def behind_table(table: pl.DataFrame, place: Ints, kept: int, terms: Terms) -> pl.DataFrame:
    """Return the rows of ``session_table`` whose ``place`` (s,) is ``kept`` or more, with other features.

    These are the z-scores of the best and the second turn, and the likeness of the best turn to that of the session in
    place 0, as a z-score among these rows of the question. ``terms`` are those of the rows of ``features``.
    """
    best = table[BEST].cast(pl.Int64).to_numpy()
    like = likeness(terms, best, dense_numbers(table["question"]), place, 1)[:, 0]
    rows = table.select(*KEY, BEST, "best learned", "second learned", pl.Series("likeness", like)).filter(place >= kept)
    mean, deviation = pl.col("likeness").mean().over("question"), pl.col("likeness").std(ddof=0).over("question")
    return rows.with_columns(pl.when(deviation > 1e-9).then((pl.col("likeness") - mean) / deviation).otherwise(0.0))


def fit_sessions(table: pl.DataFrame, held: Bools,
                 dataset: NDArray[np.int32] | None = None) -> SessionModel:
    """Fit on the rows of ``session_table`` whose learned scores are out of fold; held (s,): has evidence.

    Each session with evidence is set against those of its question without any. Questions with none or with nothing
    else teach nothing; without any other question the order is that of the best learned turn. Data sets, numbered by
    ``dataset`` (s,), count the same, however many questions they have.
    """
    names = tuple(c for c in table.columns if c not in (*KEY, BEST))
    x = table.select(names).to_numpy()
    mean, scale = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-6)
    x = (x - mean) / scale
    _, question = np.unique(table["question"].to_numpy(), return_inverse=True)
    count = np.bincount(question, weights=held)
    weight = np.ones(len(held)) if dataset is None else _equal_weights(question, dataset)
    share = np.where(held, weight / np.maximum(count[question], 1), 0.0)  # each question of a data set counts the same
    start = np.zeros(len(names))
    start[0] = START

    def loss(weights: Floats) -> tuple[float, Floats]:
        value = x @ weights
        top = np.full(len(count), -np.inf)
        np.maximum.at(top, question, value)
        e = np.exp(value - top[question])
        total = e + np.bincount(question, weights=np.where(held, 0, e))[question]
        likelihood = (share[held] * np.log((e / total)[held])).sum()
        pull = np.bincount(question, weights=np.where(held, share / total, 0))
        slope = np.where(held, share * (1 - e / total), -e * pull[question])
        away = weights - start
        return SHRINKAGE / 2 * (away @ away) - likelihood, SHRINKAGE * away - x.T @ slope

    found = scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B").x
    return SessionModel(features=names, mean=tuple(mean.tolist()), scale=tuple(scale.tolist()),
                        weights=tuple(found.tolist()))


def _equal_weights(question: Ints, dataset: NDArray[np.int32]) -> Floats:
    """Return the weight of each row's question, (s,): equal sums over the questions of each data set, 1 on average."""
    _, first = np.unique(question, return_index=True)
    numbers, questions = np.unique(dataset[first], return_counts=True)
    return (questions.mean() / questions)[np.searchsorted(numbers, dataset)]


def session_values(model: SessionModel, table: pl.DataFrame) -> pl.DataFrame:
    """Return (question, session, value), higher first; raise MemlabError for a feature that is missing."""
    need_features(model.features, table, "signals")
    x = (table.select(model.features).to_numpy() - np.asarray(model.mean)) / np.asarray(model.scale)
    return table.select(*KEY, pl.Series("value", np.round(x @ np.asarray(model.weights), DIGITS)))


def lead(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows (question, unit, session, score, place, ...) with the sessions in the order of their places.

    Only best turns change places with each other, and no other turn stands before its session's best one. The scores
    of a question stay, each at its place. Sessions without a place follow in the order of their best turns.
    """
    best_first = rows.sort("question", "score", "unit", descending=[False, True, False])
    number = pl.int_range(pl.len()).over("question")
    placed = best_first.with_columns(number.alias("\0place"))
    first = placed.group_by(KEY, maintain_order=True).agg(pl.col("\0place", "place").first()).with_columns(
        number.alias("\0old"))
    new = first.sort("question", "place", "\0old", nulls_last=True).with_columns(number.alias("\0new"))
    slots = first.select("question", pl.col("\0old").alias("\0new"), pl.col("\0place").alias("\0slot"))
    moved = new.join(slots, on=["question", "\0new"]).select(*KEY, pl.col("\0place").alias("\0first"), "\0slot")
    placed = placed.join(moved, on=KEY, how="left", maintain_order="left")
    leads = pl.col("\0place") == pl.col("\0first")
    key = pl.when(leads).then("\0slot").otherwise(pl.max_horizontal("\0place", "\0slot"))
    ordered = placed.sort("question", key, ~leads, "\0place")
    return ordered.with_columns(best_first["score"]).select(rows.columns)


def rescore(ranking: pl.DataFrame, frame: pl.DataFrame, scores: Floats, depth: int,
            placed: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return the ranking with the rows of ``frame`` by these scores (n,), and those beyond ``depth`` behind them.

    The ranking is sorted by question and rank, and ``frame`` has all of its rows up to ``depth``, in any order. Equal
    scores keep their order: each rank of the first ranking costs one unit of the last digit. ``placed`` has the rows of
    ``frame`` (question, unit, session, place), and puts sessions into their places.
    """
    inside = ranking["rank"].to_numpy() <= depth
    head = ranking.select(*PAIR, "rank").filter(inside).with_row_index("row")
    at = _rows_of(head, frame)
    head = head.with_columns(pl.Series("score", scores[at]) - pl.col("rank") * 10.0**-DIGITS)
    if placed is not None:
        head = lead(head.with_columns(placed["session", "place"][at]))
    first = rank_units(head)
    row = np.arange(ranking.height)  # the tail keeps its rows
    row[inside] = row[inside][first["row"].to_numpy()]
    tail = below(first, ranking.select("question", "score").filter(~inside))["score"].round(DIGITS) + 0.0
    score = np.empty(ranking.height)
    score[inside], score[~inside] = first["score"].to_numpy(), tail.to_numpy()
    moved = ranking.drop("score", "rank", "selected")[row]
    return moved.select(*PAIR, pl.Series("score", score), ranking["rank"], pl.lit(False).alias("selected"),
                        pl.exclude(PAIR))


def _rows_of(pairs: pl.DataFrame, frame: pl.DataFrame) -> slice | Ints:
    """Return the row in ``frame`` of each of these (question, unit, ...), which are often its own rows."""
    if pairs.select(PAIR).equals(frame.select(PAIR)):
        return slice(None)
    rows = pairs.select(PAIR).join(frame.select(PAIR).with_row_index("row"), on=PAIR, how="left", maintain_order="left")
    return rows["row"].to_numpy().astype(np.int64)


def session_numbers(frame: pl.DataFrame, units: pl.DataFrame) -> Ints:
    """Return the number of each row's session in the corpus of its question, (n,)."""
    return frame.select("unit").join(units.select("unit", "session"), on="unit", how="left", maintain_order="left")[
        "session"].cast(pl.Int64).to_numpy()
