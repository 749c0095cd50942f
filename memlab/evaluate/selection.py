"""What was selected and packed: is the evidence in it, and what did it cost?"""

from __future__ import annotations

import polars as pl

from memlab.evaluate.evidence_ranks import Ranks, holders, matrix, scored_evidence, unit_ranks
from memlab.evaluate.retrieval import Values, as_columns, recall, recall_all, recall_any
from memlab.evaluate.shown_turns import covered
from memlab.tables import Tables


def within(found: Ranks, k: float, prefix: str) -> dict[str, Values]:
    """Any, all and the share of the evidence up to rank k: ``{prefix}/recall_any`` and so on. (q, g) -> (q,)."""
    return {f"{prefix}/recall_any": recall_any(found, k), f"{prefix}/recall_all": recall_all(found, k),
            f"{prefix}/recall": recall(found, k)}


def selection(tables: Tables) -> pl.DataFrame:
    """Score what ``ranking`` marks as selected, and ``context``: one row a question.

    ``selected/session/...`` and, where evidence turns are known, ``selected/turn/...`` as in ``within``: a session that
    is selected shows all its turns, so that arms of any unit compare within one budget of tokens;
    ``selected/k`` units selected; ``context/tokens`` tokens shown to the reader; ``context/evidence_share`` of
    those tokens the share in units that hold evidence, null for an empty context. The last two describe what was
    packed, which a token budget may have cut; the recall columns describe what was selected.
    """
    questions, units, evidence = tables["questions"]["question"], tables["units"], scored_evidence(tables)
    chosen = tables["ranking"].filter("selected").with_columns(pl.lit(1).alias("rank"))  # in or out, no order
    columns = within(matrix(unit_ranks(chosen, units, evidence, "session"), questions), 1, "selected/session")
    if evidence["turn"].is_not_null().any():
        columns |= within(matrix(unit_ranks(chosen, units, evidence, "turn"), questions), 1, "selected/turn")
    return as_columns(questions, columns).join(cost(tables, chosen, evidence), on="question", how="left",
                                               maintain_order="left")


def with_evidence(tables: Tables, evidence: pl.DataFrame) -> pl.DataFrame:
    """Return ``context`` with ``held``: whether a row shows evidence of its question.

    A row shows its unit's turns, and may show the round or session around them: those rows of an evidence session
    whose unit holds none are read word for word.
    """
    held = holders(tables["units"], evidence).select("question", "unit").unique().with_columns(
        pl.lit(True).alias("held"))
    rows = tables["context"].with_row_index("row").join(
        held, on=["question", "unit"], how="left", maintain_order="left").with_columns(pl.col("row").cast(pl.Int32))
    near = (rows.filter(pl.col("held").is_null())
            .join(tables["units"].select("unit", "session"), on="unit")
            .join(evidence.select("question", "session").unique(), on=["question", "session"], how="semi"))
    if near.is_empty():
        return rows.drop("row")
    shown = covered(near.select(pl.col("row").alias("question"), "unit", "text"), tables).rename({"question": "row"})
    around = (shown.join(near.select("row", "question"), on="row")
              .join(evidence.select("question", "session", "turn"), on=["question", "session", "turn"], how="semi"))
    told = around.select("row").unique().with_columns(pl.lit(True).alias("around"))
    return rows.join(told, on="row", how="left", maintain_order="left").with_columns(
        pl.coalesce("held", "around").alias("held")).drop("row", "around")


def cost(tables: Tables, chosen: pl.DataFrame, evidence: pl.DataFrame) -> pl.DataFrame:
    """Return (question, selected/k, context/tokens, context/evidence_share)."""
    packed = with_evidence(tables, evidence).group_by("question").agg(
        pl.col("tokens").sum().cast(pl.Float64).alias("context/tokens"),
        pl.col("tokens").filter("held").sum().alias("evidence"))
    counted = chosen.group_by("question").agg(pl.len().cast(pl.Float64).alias("selected/k"))
    has = evidence.select("question").unique().with_columns(pl.lit(True).alias("has"))
    rows = tables["questions"].select("question")
    for part in (counted, packed, has):
        rows = rows.join(part, on="question", how="left", maintain_order="left")
    return rows.select(
        "question", pl.col("selected/k").fill_null(0.0), pl.col("context/tokens").fill_null(0.0),
        pl.when(pl.col("has") & (pl.col("context/tokens") > 0))
        .then(pl.col("evidence") / pl.col("context/tokens")).alias("context/evidence_share"))
