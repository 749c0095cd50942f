"""The evidence funnel: the stage at which each piece of evidence is lost, from the tables alone."""

from __future__ import annotations

import polars as pl

from memlab.evaluate.evidence_ranks import holders
from memlab.evaluate.selection import shown_turns
from memlab.tables import SESSION, Tables

STEPS = ("never written", "not in the pool", "ranked too low", "cut by K", "dropped by the packer", "shown")
"""Where a piece of evidence is lost, from the first stage to the last; "shown" = the reader could read it."""

DEEP = 50
"""The largest constant K that is compared: evidence up to this rank was cut by K, evidence below it ranked too low."""

VIEWS = ("any", "all")
"""Evidence counts as shown when any piece of it is, or only when all of it is."""


def evidence_steps(tables: Tables, deep: int = DEEP) -> pl.DataFrame:
    """Return (question, session, turn, step): where each piece of evidence is lost, as an index of ``STEPS``.

    A piece is a turn, or a session where only that is known. Evidence is written if a memory covers it, in the pool if
    a unit that holds it was ranked, and shown if its text is in the part of ``context`` that fits into the prompt.
    """
    corpus = tables["questions"].select("question", "corpus")
    evidence = tables["evidence"].join(corpus, on="question").select("question", "corpus", "session", "turn").unique()
    memories = tables["memories"].select(*SESSION, pl.col("turns").alias("turn")).explode("turn").unique()
    by_turn = evidence.filter(pl.col("turn").is_not_null()).join(memories, on=[*SESSION, "turn"], how="semi")
    by_session = evidence.filter(pl.col("turn").is_null()).join(memories, on=SESSION, how="semi")
    written = pl.concat([by_turn, by_session]).with_columns(pl.lit(True).alias("written"))
    units = holders(tables["units"], evidence).join(
        tables["ranking"].select("question", "unit", "rank", "selected"), on=["question", "unit"])
    key = ["question", "session", "turn"]
    best = units.group_by(key).agg(pl.col("rank").min(), pl.col("selected").any())
    shown = shown_turns(read_context(tables), tables)
    packed = pl.concat([
        evidence.join(shown, on=key, how="semi"),
        evidence.filter(pl.col("turn").is_null()).join(shown, on=key[:2], how="semi"),
    ]).select(*key, pl.lit(True).alias("packed"))
    step = (pl.when(pl.col("packed")).then(5).when(pl.col("selected")).then(4).when(pl.col("rank") <= deep).then(3)
            .when(pl.col("rank").is_not_null()).then(2).when(pl.col("written")).then(1).otherwise(0))
    return (evidence.join(written, on=[*SESSION, "question", "turn"], how="left", nulls_equal=True)
            .join(best, on=key, how="left", nulls_equal=True).join(packed, on=key, how="left", nulls_equal=True)
            .select(*key, step.cast(pl.Int32).alias("step")).sort(key))


def read_context(tables: Tables) -> pl.DataFrame:
    """Return the rows of ``context`` that fit into the prompt: the reader drops the last ones."""
    context = tables["context"]
    if "answers" not in tables:
        return context
    dropped = tables["answers"].filter(pl.col("sample") == 0).select("question", "dropped")
    rows = context.join(dropped, on="question", how="left", maintain_order="left").with_columns(
        pl.int_range(pl.len()).over("question").alias("nth"), pl.len().over("question").alias("all"))
    return rows.filter(pl.col("nth") < pl.col("all") - pl.col("dropped").fill_null(0)).select(context.columns)


def reached(steps: pl.DataFrame, view: str) -> pl.DataFrame:
    """Return (question, reached), a name of ``STEPS``: the best piece under "any", the worst under "all"."""
    step = pl.col("step").max() if view == "any" else pl.col("step").min()
    return steps.group_by("question").agg(step).select(
        "question", pl.col("step").replace_strict(dict(enumerate(STEPS)), return_dtype=pl.String).alias("reached"))
