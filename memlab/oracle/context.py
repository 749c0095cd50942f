"""Upper bounds of memory: a context of the evidence, alone or before the selected units."""

from __future__ import annotations

from typing import ClassVar, Literal

import polars as pl

from memlab.read.pack import (
    CHRONOLOGICAL,
    PACK_READS,
    PACK_WRITES,
    MaxTokens,
    make_context,
    selected_texts,
    session_texts,
    visible_rows,
    within_budget,
)
from memlab.read.prompt import Value, render_units
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import SESSION, Tables
from memlab.text.token_counter import count_tokens

_ROW = ["question", *SESSION, "said_on", "turn", "unit", "shown", "tokens"]


@stage(sees=("gold",))
class OracleContext:
    """Show gold, which measures how much is lost in reading rather than in retrieval.

    * ``turns``: the evidence turns alone, in the order of time; the whole session where only that is known.
    * ``sessions``: the evidence sessions whole, in the order of time.
    * ``gold_first``: the evidence as in ``turns``, then the selected units in rank order; one that shows nothing but
      evidence turns, or a text shown already, is left out.

    With ``max_tokens``, rows that do not fit are skipped, so evidence comes before the selected units. A question
    without evidence is shown nothing, or only the selected units. ``value`` is that of the selected units.
    """

    reads: ClassVar = (*PACK_READS, "questions", "evidence")
    writes: ClassVar = PACK_WRITES

    mode: Literal["turns", "sessions", "gold_first"] = "turns"  # turns | sessions | gold_first
    value: Value = "unit"
    max_tokens: MaxTokens = None  # a number: what does not fit into it is passed over

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the context and the texts that it needs; a row's unit is the first that holds the evidence."""
        evidence = tables["evidence"].select("question", "session", "turn").unique()
        if self.mode == "sessions":
            evidence = evidence.with_columns(pl.lit(None, pl.Int32).alias("turn")).unique()
        gold = evidence_rows(evidence, tables).sort("question", *CHRONOLOGICAL).with_columns(
            pl.lit(0, pl.Int32).alias("rank"))
        if self.mode != "gold_first":
            return make_context(within_budget(gold, self.max_tokens), CHRONOLOGICAL, tables)
        selected = _beyond(selected_texts(tables, self.value), evidence, tables, alone=self.value in ("unit", "turn"))
        rows = pl.concat([gold, selected.select(gold.columns)]).sort("question", "rank", maintain_order=True)
        rows = rows.unique(["question", "shown"], keep="first", maintain_order=True)
        nth = pl.int_range(pl.len()).over("question").alias("nth")
        return make_context(within_budget(rows.with_columns(nth), self.max_tokens), ["nth"], tables)


def evidence_rows(evidence: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Render evidence (question, session, turn or null): one row per turn, or per session where the turn is null."""
    whole = visible_rows(tables, session_texts(tables)).join(
        evidence.filter(pl.col("turn").is_null()).select("question", "session"), on=["question", "session"], how="semi")
    turns = visible_rows(tables, _turns(evidence, tables)).join(
        evidence.drop_nulls("turn"), on=["question", "session", "turn"], how="semi")
    return pl.concat([whole.select(_ROW), turns.select(_ROW)])


def _turns(evidence: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Render the turns that are evidence of any question: corpus, session, turn, said_on, unit, shown, tokens."""
    of = ["corpus", "session", "turn"]
    wanted = evidence.drop_nulls("turn").join(tables["questions"].select("question", "corpus"), on="question")
    turns = tables["turns"].select(of).join(wanted, on=of, how="semi").sort(of)
    units = turns.select(pl.int_range(pl.len(), dtype=pl.Int64).alias("unit"), "corpus", "session",
                            pl.concat_list("turn").alias("turns"), pl.lit("turn").alias("level"))
    shown = render_units(units, tables, "turn").sort("unit")["text"].alias("shown")
    holding = tables["units"].explode("turns").rename({"turns": "turn"}).group_by(of).agg(pl.col("unit").min())
    return (turns.with_columns(shown, count_tokens(shown).alias("tokens"))
            .join(holding, on=of, how="left").join(tables["sessions"], on=SESSION, how="left"))


def _beyond(rows: pl.DataFrame, evidence: pl.DataFrame, tables: Tables, alone: bool) -> pl.DataFrame:
    """Drop selected units that lie in a session shown whole, and those all of whose turns are evidence turns.

    The latter only where units are shown ``alone``: in their round or session they add more than the evidence.
    """
    units = rows.select("question", "unit").join(
        tables["units"].select("unit", "session", pl.col("turns").alias("turn")), on="unit").explode("turn")
    by_turn = evidence.drop_nulls("turn").filter(alone).with_columns(pl.lit(True).alias("gold"))
    by_session = evidence.filter(pl.col("turn").is_null()).select("question", "session", pl.lit(True).alias("whole"))
    new = (units.join(by_turn, on=["question", "session", "turn"], how="left")
           .join(by_session, on=["question", "session"], how="left")
           .filter(pl.col("gold").is_null() & pl.col("whole").is_null()))
    return rows.join(new.select("question", "unit"), on=["question", "unit"], how="semi", maintain_order="left")


@stage(sees=("ids",))
class ShownIds:
    """Show the selected units in rank order, each under its session's own id, as RAG Memory Provider v1 did.

    An id that begins with ``answer_`` reveals evidence, so the gain of this arm over the same pack without ids is
    leakage. Every report marks it as tainted. Fields as ``memlab.read.pack.ByRank``.
    """

    reads: ClassVar = (*PACK_READS, "ids")
    writes: ClassVar = PACK_WRITES

    value: Value = "unit"
    max_tokens: MaxTokens = None  # a number: what does not fit into it is passed over, never cut

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the context and the texts that it needs."""
        names = tables["ids"].filter(pl.col("kind") == "session").select("corpus", "session", "name")
        rows = selected_texts(tables, self.value).join(names, on=SESSION, how="left", maintain_order="left")
        named = pl.format("Session {}:\n{}", pl.col("name").fill_null("?"), "shown")
        rows = rows.with_columns(named.alias("shown")).drop("name")
        rows = rows.with_columns(count_tokens(pl.col("shown")).alias("tokens"))
        return make_context(within_budget(rows, self.max_tokens), ["rank"], tables)
