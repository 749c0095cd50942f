"""Explanations of a learned ranking: importances of features, and what each adds to the first turn's lead.

The share of a feature in the lead of one turn over another is the difference of what it adds to both
(``BoostedTrees.contributions``); the shares of all features add up to the trees' lead.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab.learn.ranker.cross_fit import Fits
from memlab.learn.ranker.features import PAIR
from memlab.learn.ranker.model import RankModel, leads
from memlab.pipeline.tables import DIGITS, SCHEMAS

TOP = 5
"""Features named for each question; the others are summed up in one row."""

SESSIONS = "weights, first session"
"""Name of what ``memlab.learn.ranker.rescore`` adds to a lead of the trees."""


def importances(fits: Fits) -> pl.DataFrame:
    """Return the table ``importances``: features with a gain, summed over the fits, largest first."""
    gains: dict[str, float] = {}
    for _, model in fits:
        for name, gain in zip(model.features, model.gains):
            gains[name] = gains.get(name, 0.0) + gain
    table = pl.DataFrame({"feature": list(gains), "gain": list(gains.values())}, schema=SCHEMAS["importances"])
    return table.filter(pl.col("gain") > 0).with_columns(pl.col("gain").round(DIGITS)).sort(
        "gain", "feature", descending=[True, False])


def reasons(ranking: pl.DataFrame, units: pl.DataFrame, frame: pl.DataFrame, fits: Fits) -> pl.DataFrame:
    """Return the table ``reasons`` for all questions with two turns among the rows of ``frame``, the features.

    For each question the ``TOP`` features with the largest differences between the first and the second turn, largest
    first and ties in the order of the features, then the sum of all others. Where the trees alone put another
    turn first, a row ``SESSIONS`` makes up for their lead; without it all rows add up to the lead of the trees.
    """
    turns = units.select("unit", "session", pl.col("turns").list.first().alias("turn"))
    rows = ranking.filter(pl.col("rank") <= 2).select(*PAIR, "rank", "score").join(turns, on="unit").join(
        frame.select(PAIR).with_row_index("row"), on=PAIR).sort("question", "rank")
    first, second = (rows.filter(pl.col("rank") == rank).drop("rank", "unit") for rank in (1, 2))
    pairs = first.join(second, on="question", suffix="_other", maintain_order="left")
    if not pairs.height:
        return pl.DataFrame(schema=SCHEMAS["reasons"])
    at, other = pairs["row"].to_numpy(), pairs["row_other"].to_numpy()
    parts: list[pl.DataFrame] = []
    for mine, model in fits:
        chosen = mine[at]
        if chosen.any():
            mine_of, both = pairs.filter(chosen), (frame[at[chosen]], frame[other[chosen]])
            lead = leads(model, *both)
            table = _largest(mine_of, both, np.round(lead, DIGITS), model.features)
            parts += [_by_sessions(mine_of, lead.sum(axis=1)), table]
    return pl.concat(parts).sort("question", maintain_order=True)


def _largest(pairs: pl.DataFrame, both: tuple[pl.DataFrame, pl.DataFrame], lead: np.ndarray,
             features: tuple[str, ...]) -> pl.DataFrame:
    """Return the rows of these pairs (m,); lead (m, features) is what each feature adds to the lead of the first.

    both: the features of the first and of the second turns, m rows each.
    """
    order = np.argsort(-np.abs(lead), axis=1, kind="stable")[:, :TOP]
    named = np.take_along_axis(lead, order, axis=1)
    others = np.round(lead.sum(axis=1) - named.sum(axis=1), DIGITS)
    value, other_value = (np.take_along_axis(turns.select(features).to_numpy(), order, axis=1) for turns in both)

    def column(of_features: np.ndarray, of_others: np.ndarray | float) -> np.ndarray:
        return np.column_stack([of_features, np.broadcast_to(of_others, len(lead))]).ravel()

    turns = pairs.select("question", "session", "turn", "session_other", "turn_other")
    table = turns[np.repeat(np.arange(len(lead)), order.shape[1] + 1)].with_columns(
        pl.Series("feature", [*features, None], pl.String).gather(column(order, len(features))),
        pl.Series("value", column(value, np.nan), nan_to_null=True),
        pl.Series("other_value", column(other_value, np.nan), nan_to_null=True),
        pl.Series("contribution", column(named, others)))
    table = table.filter(pl.col("feature").is_null() | (pl.col("contribution") != 0))
    return table.rename({"session_other": "other_session", "turn_other": "other_turn"}).cast(
        pl.Schema(SCHEMAS["reasons"]))


def _by_sessions(pairs: pl.DataFrame, lead: np.ndarray) -> pl.DataFrame:
    """Return a row for each pair (m,) that the trees order otherwise, which makes up for their lead (m,)."""
    keys = pairs.select("question", "session", "turn", "session_other", "turn_other").rows()
    rows = [(*key, SESSIONS, None, None, round(float(-trees), DIGITS))
            for key, trees in zip(keys, lead) if trees < -10.0**-3]
    return pl.DataFrame(rows, schema=SCHEMAS["reasons"], orient="row")


def describe_importances(model: RankModel, most: int = 15) -> str:
    """Return a table of the features whose splits gain most: their shares of the gain of all splits."""
    gains = importances([(np.zeros(0, np.bool_), model)])
    return "\n".join(f"{gain / gains['gain'].sum():7.1%}  {feature}" for feature, gain in gains.head(most).iter_rows())
