"""Upper bounds of memory: the reader is handed the evidence, alone or before what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import polars as pl

from memlab.read.pack.by_rank import PACK_READS, PACK_WRITES, TIME, MaxTokens, chosen, in_order, within
from memlab.read.pack.full_context import so_far, whole_sessions
from memlab.read.render import Value, rendered
from memlab.stage import stage
from memlab.tables import Tables
from memlab.token_counter import count_tokens

if TYPE_CHECKING:
    from memlab.store import Store

_SESSION = ["corpus", "session"]
_ROW = ["question", *_SESSION, "said_on", "turn", "unit", "shown", "tokens"]


@stage
class OracleContext:
    """Show gold: what a reader makes of it says how much is lost in reading, and not in retrieval.

    * ``turns``: the evidence turns alone, in the order of time; the whole session where only that is known.
    * ``sessions``: the evidence sessions whole, in the order of time.
    * ``gold_first``: the evidence as in ``turns``, then the selected units in rank order; one that shows nothing but
      evidence turns, or a text shown already, is left out.

    With ``max_tokens`` what does not fit is passed over, so evidence comes before what was selected. A question
    without evidence is shown nothing, or just what was selected. ``value`` is that of the selected units.
    """

    oracle: ClassVar = True
    reads: ClassVar = (*PACK_READS, "questions", "evidence")
    writes: ClassVar = PACK_WRITES

    mode: Literal["turns", "sessions", "gold_first"] = "turns"
    value: Value = "unit"
    max_tokens: MaxTokens = None

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the context and the texts that it needs; a row's unit is the first that holds the evidence."""
        known = tables["evidence"].select("question", "session", "turn").unique()
        if self.mode == "sessions":
            known = known.with_columns(pl.lit(None, pl.Int32).alias("turn")).unique()
        gold = evidence_rows(known, tables).sort("question", *TIME).with_columns(pl.lit(0, pl.Int32).alias("rank"))
        if self.mode != "gold_first":
            return in_order(within(gold, self.max_tokens), TIME, tables)
        found = _beyond(chosen(tables, self.value), known, tables, alone=self.value in ("unit", "turn"))
        rows = pl.concat([gold, found.select(gold.columns)]).sort("question", "rank", maintain_order=True)
        rows = rows.unique(["question", "shown"], keep="first", maintain_order=True)
        nth = pl.int_range(pl.len()).over("question").alias("nth")
        return in_order(within(rows.with_columns(nth), self.max_tokens), ["nth"], tables)


def evidence_rows(known: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Render evidence (question, session, turn or null): one row a turn, or a session where the turn is null."""
    whole = so_far(tables, whole_sessions(tables)).join(
        known.filter(pl.col("turn").is_null()).select("question", "session"), on=["question", "session"], how="semi")
    turns = so_far(tables, _turns(known, tables)).join(
        known.drop_nulls("turn"), on=["question", "session", "turn"], how="semi")
    return pl.concat([whole.select(_ROW), turns.select(_ROW)])


def _turns(known: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Render the turns that are anyone's evidence: corpus, session, turn, said_on, unit, shown, tokens."""
    of = ["corpus", "session", "turn"]
    wanted = known.drop_nulls("turn").join(tables["questions"].select("question", "corpus"), on="question")
    turns = tables["turns"].select(of).join(wanted, on=of, how="semi").sort(of)
    standing = turns.select(pl.int_range(pl.len(), dtype=pl.Int64).alias("unit"), "corpus", "session",
                            pl.concat_list("turn").alias("turns"), pl.lit("turn").alias("level"))
    shown = rendered(standing, tables, "turn").sort("unit")["text"].alias("shown")
    holding = tables["units"].explode("turns").rename({"turns": "turn"}).group_by(of).agg(pl.col("unit").min())
    return (turns.with_columns(shown, count_tokens(shown).alias("tokens"))
            .join(holding, on=of, how="left").join(tables["sessions"], on=_SESSION, how="left"))


def _beyond(rows: pl.DataFrame, known: pl.DataFrame, tables: Tables, alone: bool) -> pl.DataFrame:
    """Drop selected units that lie in a session shown whole, and those all of whose turns are evidence turns.

    The latter only where units are shown ``alone``: in their round or session they bring more than the evidence.
    """
    units = rows.select("question", "unit").join(
        tables["units"].select("unit", "session", pl.col("turns").alias("turn")), on="unit").explode("turn")
    by_turn = known.drop_nulls("turn").filter(alone).with_columns(pl.lit(True).alias("gold"))
    by_session = known.filter(pl.col("turn").is_null()).select("question", "session", pl.lit(True).alias("whole"))
    new = (units.join(by_turn, on=["question", "session", "turn"], how="left")
           .join(by_session, on=["question", "session"], how="left")
           .filter(pl.col("gold").is_null() & pl.col("whole").is_null()))
    return rows.join(new.select("question", "unit"), on=["question", "unit"], how="semi", maintain_order="left")
