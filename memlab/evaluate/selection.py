"""Evidence and cost of what was selected and packed."""

from __future__ import annotations

import polars as pl

from memlab.evaluate.evidence_ranks import Ranks, holders, matrix, scored_evidence, unit_ranks
from memlab.evaluate.retrieval import as_columns, recall, recall_all, recall_any
from memlab.evaluate.statistics import Values
from memlab.tables import SESSION, Tables, with_text
from memlab.text.transcript import TURN_SEPARATOR, render_turns


def within(ranks: Ranks, k: float, prefix: str) -> dict[str, Values]:
    """Return any, all and the share of the evidence up to rank k, as ``{prefix}/recall_any`` ...; (q, g) -> (q,)."""
    return {f"{prefix}/recall_any": recall_any(ranks, k), f"{prefix}/recall_all": recall_all(ranks, k),
            f"{prefix}/recall": recall(ranks, k)}


def selection(tables: Tables) -> pl.DataFrame:
    """Score the units that ``ranking`` marks as selected, and ``context``: one row per question.

    * ``selected/session/...`` and, where evidence turns are known, ``selected/turn/...`` as in ``within``: a selected
      session shows all its turns, so that arms of any unit compare within one budget of tokens;
    * ``selected/k``: units selected;
    * ``context/tokens``: tokens in the context, after packing, which a token budget may have cut;
    * ``context/evidence_share``: share of those tokens in units that hold evidence, null for an empty context.
    """
    questions, units, evidence = tables["questions"]["question"], tables["units"], scored_evidence(tables)
    chosen = tables["ranking"].filter("selected").with_columns(pl.lit(1).alias("rank"))  # in or out, no order
    columns = within(matrix(unit_ranks(chosen, units, evidence, "session"), questions), 1, "selected/session")
    if evidence["turn"].is_not_null().any():
        columns |= within(matrix(unit_ranks(chosen, units, evidence, "turn"), questions), 1, "selected/turn")
    return as_columns(questions, columns).join(cost(tables, chosen, evidence), on="question", how="left",
                                               maintain_order="left")


def with_evidence(tables: Tables, evidence: pl.DataFrame) -> pl.DataFrame:
    """Return ``context`` with ``evidence``: true where a row shows evidence of its question, else null.

    A row shows its unit's turns, and may show the round or session around them: rows of an evidence session whose
    unit holds no evidence are compared word for word.
    """
    by_unit = holders(tables["units"], evidence).select("question", "unit").unique().with_columns(
        pl.lit(True).alias("evidence"))
    rows = tables["context"].with_row_index("row").join(
        by_unit, on=["question", "unit"], how="left", maintain_order="left").with_columns(pl.col("row").cast(pl.Int32))
    near = (rows.filter(pl.col("evidence").is_null())
            .join(tables["units"].select("unit", "session"), on="unit")
            .join(evidence.select("question", "session").unique(), on=["question", "session"], how="semi"))
    if near.is_empty():
        return rows.drop("row")
    turns = shown_turns(near.select(pl.col("row").alias("question"), "unit", "text_id"), tables)
    around = (turns.rename({"question": "row"}).join(near.select("row", "question"), on="row")
              .join(evidence.select("question", "session", "turn"), on=["question", "session", "turn"], how="semi"))
    by_text = around.select("row").unique().with_columns(pl.lit(True).alias("around"))
    return rows.join(by_text, on="row", how="left", maintain_order="left").with_columns(
        pl.coalesce("evidence", "around").alias("evidence")).drop("row", "around")


def cost(tables: Tables, chosen: pl.DataFrame, evidence: pl.DataFrame) -> pl.DataFrame:
    """Return (question, selected/k, context/tokens, context/evidence_share)."""
    packed = with_evidence(tables, evidence).group_by("question").agg(
        pl.col("tokens").sum().cast(pl.Float64).alias("context/tokens"),
        pl.col("tokens").filter("evidence").sum().alias("evidence_tokens"))
    counted = chosen.group_by("question").agg(pl.len().cast(pl.Float64).alias("selected/k"))
    has = evidence.select("question").unique().with_columns(pl.lit(True).alias("has"))
    rows = tables["questions"].select("question")
    for part in (counted, packed, has):
        rows = rows.join(part, on="question", how="left", maintain_order="left")
    return rows.select(
        "question", pl.col("selected/k").fill_null(0.0), pl.col("context/tokens").fill_null(0.0),
        pl.when(pl.col("has") & (pl.col("context/tokens") > 0))
        .then(pl.col("evidence_tokens") / pl.col("context/tokens")).alias("context/evidence_share"))


def shown_turns(context: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Return (question, session, turn) of the turns that the rows of a context show.

    Those are the turns of its units, and the turns of a unit's session that its text holds word for word: a row may
    show the round or the whole session around its unit. A row without a unit shows no turn.
    """
    rows = context.join(tables["units"].select("unit", *SESSION, "turns"), on="unit")
    of_units = rows.select("question", "session", pl.col("turns").alias("turn")).explode("turn").drop_nulls()
    distinct = with_text(rows.select(*SESSION, "text_id").unique(), tables["texts"])
    lines = render_turns(tables["turns"].join(distinct, on=SESSION, how="semi"), tables["texts"])
    # a header ends with a newline, a turn before or after stands a blank line away
    is_quoted = ("\n" + pl.col("text") + TURN_SEPARATOR).str.contains(
        "\n" + pl.col("display_text") + TURN_SEPARATOR, literal=True)
    quotes = distinct.join(lines.select(*SESSION, "turn", "display_text"), on=SESSION).filter(is_quoted)
    quoted = rows.select("question", *SESSION, "text_id").join(
        quotes.select(*SESSION, "text_id", "turn"), on=[*SESSION, "text_id"])
    key = ["question", "session", "turn"]
    return pl.concat([of_units, quoted.select(key)]).unique().sort(key)
