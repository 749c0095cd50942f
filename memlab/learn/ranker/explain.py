"""Explanations of a learned ranking: importances of features, and what each one adds to a turn's lead over the next.

The share of a feature in the lead of one turn over another is its Shapley value (``BoostedTrees.leads``): the shares of
all features add up to the lead, and a feature with the same value in both turns has none.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab.errors import MemlabError
from memlab.learn.ranker.cross_fit import Fits, places
from memlab.learn.ranker.features import PAIR, features
from memlab.learn.ranker.model import RankModel, apply, leads
from memlab.learn.ranker.sessions import rescore, session_numbers
from memlab.learn.ranker.words import turn_terms
from memlab.tables import DIGITS, SCHEMAS, SESSION, Tables, with_text
from memlab.text.display import one_line

TOP = 5
"""Features named for each question; the others are summed up in one row."""

SESSIONS = "order of sessions"
"""Name of the share of the session model in a lead (``memlab.learn.ranker.sessions``)."""


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
    turn first, a row ``SESSIONS`` has what the session model adds to the lead, so that all rows add up to it.
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
            if model.sessions is not None:
                ahead = (mine_of["score"] - mine_of["score_other"]).to_numpy() - lead.sum(axis=1)
                table = pl.concat([_by_sessions(mine_of, ahead, lead.sum(axis=1)), table])
            parts.append(table)
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


def _by_sessions(pairs: pl.DataFrame, ahead: np.ndarray, lead: np.ndarray) -> pl.DataFrame:
    """Return a row for each pair (m,) that the trees order otherwise; ahead (m,) is added to their lead (m,)."""
    keys = pairs.select("question", "session", "turn", "session_other", "turn_other").rows()
    rows = [(*key, SESSIONS, None, None, round(float(more), DIGITS))
            for key, more, trees in zip(keys, ahead, lead) if trees < -10.0**-3]
    return pl.DataFrame(rows, schema=SCHEMAS["reasons"], orient="row")


def describe_importances(model: RankModel, most: int = 15) -> str:
    """Return a table of the features whose splits gain most: their shares of the gain of all splits."""
    gains = importances([(np.zeros(0, np.bool_), model)])
    return "\n".join(f"{gain / gains['gain'].sum():7.1%}  {feature}" for feature, gain in gains.head(most).iter_rows())


def explain(model: RankModel, tables: Tables, question: str, most: int = 8, turns: int = 3) -> str:
    """Return why the first turns of a question stand first: what each feature adds to their lead over the next turn.

    ``question`` is the text of a question, or a part of only one. Raises MemlabError for any other.
    """
    asked = with_text(tables["questions"], tables["texts"])
    chosen = asked.filter(pl.col("text") == question)
    if not chosen.height:
        chosen = asked.filter(pl.col("text").str.to_lowercase().str.contains(question.lower(), literal=True))
    if chosen.height != 1:
        raise MemlabError(f"{chosen.height} questions have this text", where="question",
                          fix="give the words of one question of these data")
    own = tables.updated({"ranking": tables["ranking"].join(chosen, on="question", how="semi")})
    frame = features(own, model.depth)
    if not frame.height:
        raise MemlabError("nothing was found for this question", where="question")
    scores = apply(model, frame)
    placed = places([(np.ones(frame.height, np.bool_), model)], frame, session_numbers(frame, own["units"]), scores,
                    turn_terms(frame, own))
    ranking = rescore(own["ranking"], frame, scores, model.depth, placed)
    row_of = {unit: row for row, unit in enumerate(frame["unit"])}
    order = [row_of[unit] for unit in ranking.filter(pl.col("rank") <= turns + 1)["unit"] if unit in row_of]
    ahead, behind = (np.array(rows, np.int64) for rows in (order[:-1], order[1:]))
    parts = leads(model, frame[ahead], frame[behind])
    by_trees = {int(row): place for place, row in enumerate(np.argsort(-scores, kind="stable"), 1)}
    lines = [one_line(chosen["text"][0])]
    said = with_text(own["units"].select("unit", *SESSION, pl.col("turns").list.first().alias("turn")).join(
        own["turns"], on=[*SESSION, "turn"]), own["texts"])
    texts = dict(said.join(frame.select(PAIR), on="unit", how="semi").select("unit", "text").iter_rows())
    for rank, row in enumerate(order[:turns], 1):
        text = one_line(texts[frame["unit"][int(row)]])[:160]
        by_its_session = "" if by_trees[row] == rank else f"{by_trees[row]} by trees and moved by the session model, "
        lines.append(f"\n{rank}. score {scores[row]:.2f}, {by_its_session}{row + 1} by weights: {text}")
        if rank == len(order):
            break
        following, lead = order[rank], parts[rank - 1]
        lines.append(f"   lead over the next one by trees: {lead.sum():+.2f}; of which, with its value in brackets:")
        for i in (i for i in np.argsort(-np.abs(lead), kind="stable")[:most] if lead[i]):
            one, two = (_value(frame[model.features[i]][int(at)]) for at in (row, following))
            lines.append(f"   {lead[i]:+.2f}  {model.features[i]} = {one} ({two})")
    return "\n".join(lines)


def _value(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f}"
