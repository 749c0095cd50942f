"""Stale evidence: how much of the evidence that is shown is outdated, and whether what holds ranks first.

Counted are the questions that have both valid and outdated evidence. Valid is the evidence that is not outdated. A
piece is a turn, or a session where only that is known.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab.evaluate.retrieval import as_columns, holders, scored_evidence
from memlab.evaluate.statistics import Values, ratio_parts
from memlab.pipeline.tables import SESSION, Tables

PIECE = ["question", "session", "turn"]


def stale(tables: Tables, budget: int) -> pl.DataFrame:
    """Score ``ranking`` and ``units``: one row per question; a frame of questions alone where nothing is outdated.

    * ``stale/shown@10``: of all evidence in the first 10 ranks, pooled over the questions, the share that is outdated
      (``ratio_parts``: its mean is the figure, one question's value is not);
    * ``stale/recall@10``: the share of a question's valid evidence there;
    * ``stale/shown_within_1000`` and ``stale/recall_within_1000``: both in the head that fits into ``budget`` tokens;
    * ``stale/newest_first``: 1 if a valid piece of the newest session that has one ranks above every outdated piece; 0
      also where none of them is in the ranking.
    """
    questions = tables["questions"]["question"]
    pieces = evidence_grades(tables)
    if pieces.is_empty():
        return as_columns(questions, {})
    ranking = tables["ranking"].sort("question", "rank")
    if "tokens" not in ranking.columns:
        ranking = ranking.with_columns(pl.lit(np.inf).alias("tokens"))
    spent = pl.col("tokens").fill_null(np.inf).cum_sum().over("question")  # below the measured ranks: no end
    places = ranking.select("question", "unit", "rank", spent.alias("cost"))
    first = holders(tables["units"], pieces.drop("outdated")).join(places, on=["question", "unit"]).group_by(
        PIECE).agg(pl.col("rank", "cost").min())
    found = pieces.join(tables["sessions"], on=SESSION, how="left").join(
        first, on=PIECE, how="left", nulls_equal=True).sort("question", "said_on", "session")
    valid, outdated = found.filter(~pl.col("outdated")), found.filter("outdated")
    newest = valid.filter(pl.col("session") == pl.col("session").last().over("question"))
    counted = found.select(pl.col("question").unique().sort())
    columns: dict[str, Values] = {}
    for name, shown in (("@10", pl.col("rank") <= 10), (f"_within_{budget}", pl.col("cost") <= budget)):
        held, old = (_by_question(counted, rows, shown.fill_null(False).sum()) for rows in (valid, outdated))
        columns |= {f"stale/shown{name}": ratio_parts(old, held + old),
                    f"stale/recall{name}": held / _by_question(counted, valid, pl.len())}
    leads = [_by_question(counted, rows, pl.col("rank").min()) for rows in (newest, outdated)]
    columns["stale/newest_first"] = (leads[0] < np.nan_to_num(leads[1], nan=np.inf)).astype(np.float64)
    return questions.to_frame().join(as_columns(counted["question"], columns), on="question", how="left")


def evidence_grades(tables: Tables) -> pl.DataFrame:
    """Return (question, corpus, session, turn, outdated): the pieces of the questions that have both grades."""
    if "outdated" not in tables:
        return pl.DataFrame(schema=dict.fromkeys(PIECE, pl.Int32))
    old = tables["outdated"].unique().join(tables["questions"].select("question", "corpus"), on="question")
    valid = scored_evidence(tables).join(old, on=PIECE, how="anti", nulls_equal=True)
    both = valid.select("question").join(old, on="question", how="semi").unique()
    return pl.concat([rows.select("question", *SESSION, "turn", pl.lit(grade).alias("outdated")) for rows, grade in (
        (valid, False), (old, True))]).join(both, on="question", how="semi")


def _by_question(counted: pl.DataFrame, rows: pl.DataFrame, value: pl.Expr) -> Values:
    """Return a value of the rows of each question, (q,)."""
    values = rows.group_by("question").agg(value.cast(pl.Float64).alias("value"))
    return counted.join(values, on="question", how="left", maintain_order="left")["value"].fill_null(
        np.nan).to_numpy()
