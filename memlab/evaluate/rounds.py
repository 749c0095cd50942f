"""Recall over rounds: a user's message with all that the assistant says before the next one, BEAM's own unit.

Printed beside the figures of turns where a data set declares it (``counts_rounds = True``): systems that store a
message and its reply as one text are measured so.
"""

from __future__ import annotations

import polars as pl

from memlab.evaluate.retrieval import KS, as_columns, grain, matrix, recall, scored_evidence, session_ranks
from memlab.pipeline.tables import SESSION, Tables
from memlab.pipeline.transcript import round_numbers

TURN = [*SESSION, "turn"]


def round_recall(tables: Tables) -> pl.DataFrame:
    """Score ``ranking`` and ``units`` by rounds: (question, ``round/recall@k`` for each k of turns).

    A ranking of turns, or of passages, becomes one of rounds by their first occurrence; the rounds that one passage
    brings share the last of their places. A round is gold if it holds an evidence turn. Null where a question does not
    count or no turn of its evidence is known; a ranking of sessions gives a frame of questions alone.
    """
    questions, units = tables["questions"]["question"], tables["units"]
    if grain(units) == "session":
        return as_columns(questions, {})
    numbered = tables["turns"].sort(TURN).select(*TURN, round_numbers().alias("round")).select(
        *TURN, pl.struct(*SESSION, "round").rle_id().cast(pl.Int64).alias("round"))
    held = units.select("unit", *SESSION, pl.col("turns").alias("turn")).explode("turn").join(numbered, on=TURN)
    # a document of another system's ranking that the data do not have covers no turn, and is a round of its own
    brought = units.select("unit").join(held.select("unit", "round").unique(), on="unit", how="left").select(
        "unit", pl.coalesce("round", -1 - pl.col("unit")).alias("session"))
    gold = scored_evidence(tables).join(numbered, on=TURN).select("question", pl.col("round").alias("session"))
    ranks = matrix(session_ranks(tables["ranking"], brought, gold), questions)
    return as_columns(questions, {f"round/recall@{k}": recall(ranks, k) for k in KS})
