"""The rank of each piece of evidence, as a matrix (questions x evidence): the input of every retrieval metric.

Rankings list units (sessions, turns, or memories that cover several turns). The rank of a session is that of its
first unit, counting distinct sessions; the rank of a turn is that of the first unit that covers it.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.tables import SESSION, Tables

Ranks = NDArray[np.float64]
"""Shape (questions, evidence): rank from 1, inf = not retrieved, NaN = no such evidence (padding)."""

Level = Literal["session", "turn"]

Grain = Literal["session", "turn", "passage"]


def grain(units: pl.DataFrame) -> Grain:
    """Return whether a unit is a whole session, one turn, or a passage of several turns.

    Memories count by what they cover: sessions where each session has one memory, turns where each memory has one.
    """
    levels = set(units["level"].unique())
    if levels <= {"session"}:
        return "session"
    if levels == {"turn"}:
        return "turn"
    if units.select("corpus", "session").n_unique() == units.height:
        return "session"
    return "turn" if (units["turns"].list.len() == 1).all() else "passage"


def scored_evidence(tables: Tables) -> pl.DataFrame:
    """Return (question, corpus, session, turn) of the questions that count in retrieval averages."""
    scored = tables["gold"].filter("scored").select("question")
    corpus = tables["questions"].select("question", "corpus")
    return (tables["evidence"].join(scored, on="question", how="semi").join(corpus, on="question")
            .select("question", "corpus", "session", "turn").unique(maintain_order=True))


def holders(units: pl.DataFrame, evidence: pl.DataFrame) -> pl.DataFrame:
    """Pair each piece of evidence with every unit that holds it: (question, session, turn, unit).

    A session holds the evidence said in it; a finer unit holds the turns that it covers, and, where only the
    session of the evidence is known, belongs to it.
    """
    near = units.select("unit", *SESSION, "turns").join(evidence.select(SESSION).unique(), on=SESSION, how="semi")
    by_session = near.select("unit", *SESSION)
    if grain(units) == "session":
        pairs = evidence.join(by_session, on=SESSION)
    else:
        by_turn = near.explode("turns").rename({"turns": "turn"})
        with_turn, without = evidence.filter(pl.col("turn").is_not_null()), evidence.filter(pl.col("turn").is_null())
        pairs = pl.concat([with_turn.join(by_turn, on=[*SESSION, "turn"]).select(*evidence.columns, "unit"),
                           without.join(by_session, on=SESSION).select(*evidence.columns, "unit")])
    return pairs.select("question", "session", "turn", "unit").unique()


def session_ranks(ranking: pl.DataFrame, units: pl.DataFrame, evidence: pl.DataFrame) -> pl.DataFrame:
    """Return (question, session, rank) of evidence sessions, counting distinct sessions; null = not retrieved."""
    wanted = evidence.select("question", "session").unique()
    ranked = (ranking.select("question", "unit", "rank").join(wanted, on="question", how="semi")
              .join(units.select("unit", "session"), on="unit"))
    first = ranked.group_by("question", "session").agg(pl.col("rank").min())
    counted = first.with_columns(pl.col("rank").rank("ordinal").over("question"))
    return wanted.join(counted, on=["question", "session"], how="left").sort("question", "session")


def at_level(evidence: pl.DataFrame, level: Level) -> pl.DataFrame:
    """Return the evidence of a level: the known turns, or each session once with no turn."""
    if level == "turn":
        return evidence.filter(pl.col("turn").is_not_null())
    return evidence.with_columns(pl.lit(None, pl.Int32).alias("turn")).unique()


def unit_ranks(ranking: pl.DataFrame, units: pl.DataFrame, evidence: pl.DataFrame, level: Level) -> pl.DataFrame:
    """Return (question, session[, turn], rank): the rank of the first unit in that session, or over that turn."""
    wanted = at_level(evidence, level)
    key = ["question", "session"] + (["turn"] if level == "turn" else [])
    first = (holders(units, wanted).join(ranking.select("question", "unit", "rank"), on=["question", "unit"])
             .group_by(key).agg(pl.col("rank").min()))
    return wanted.select(key).join(first, on=key, how="left").sort(key)


def matrix(ranks: pl.DataFrame, questions: pl.Series) -> Ranks:
    """Lay out rows (question, rank) as one row of ranks per question, in the order of ``questions`` (q,).

    Returns shape (q, g), g the most evidence that a question has; each row ascending, inf before NaN.

    >>> rows = pl.DataFrame({"question": [7, 7, 9], "rank": [4, None, 1]})
    >>> matrix(rows, pl.Series([7, 8, 9]))
    array([[ 4., inf],
           [nan, nan],
           [ 1., nan]])
    """
    order = pl.DataFrame({"question": questions}).with_row_index("row")
    rows = (ranks.join(order.cast({"question": ranks.schema["question"]}), on="question")
            .with_columns(pl.col("rank").cast(pl.Float64).fill_null(np.inf)).sort("row", "rank")
            .with_columns(pl.int_range(pl.len()).over("row").alias("place")))
    out = np.full((len(questions), int(rows["place"].max() or 0) + 1), np.nan)  # type: ignore[call-overload, arg-type]
    out[rows["row"].to_numpy(), rows["place"].to_numpy()] = rows["rank"].to_numpy()
    return out
