"""A token budget divided into shares for retrieved units, for recent history, and for everything else."""

from __future__ import annotations

from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field, model_validator

from memlab.read.pack.by_rank import PACK_READS, PACK_WRITES, make_context, selected_texts, within_budget
from memlab.read.pack.full_context import last_turns, newest_first, session_texts, visible_rows
from memlab.read.render import Value
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables

Share = Annotated[float, Field(ge=0, le=1)]


@stage
class BudgetShares:
    """Divide ``budget`` tokens, less those of system prompt and message, among retrieved units and recent history.

    ElizaOS gives 50 % to recent history, 30 % to retrieved memories and 20 % to its providers. That last share is
    left free for the block that read/graph adds. Retrieved units are added by rank.

    History is the last turns of the corpus as of the question's day, back to the first that does not fit. It has no
    gaps, and may repeat what was retrieved, since the two are filled separately. The retrieved units are shown first,
    by rank, then history in the order of time, one row per session. Where the reader's window is too small, the
    oldest history is dropped first.
    """

    reads: ClassVar = (*PACK_READS, "questions")
    writes: ClassVar = PACK_WRITES
    value: Value = "unit"
    budget: Annotated[int, Field(ge=1)] = 8000  # tokens in total; ElizaOS takes the model's own limit
    system: Annotated[int, Field(ge=0)] = 2000  # of these for the system prompt
    message: Annotated[int, Field(ge=0)] = 500  # and for the message
    history: Share = 0.5  # share of the rest for the last turns before the question
    retrieved: Share = 0.3  # share for retrieved units
    stop_at_overflow: bool = True  # stop at the first unit that does not fit; false: skip it

    @model_validator(mode="after")
    def _shares_fit(self) -> BudgetShares:
        if self.budget <= self.system + self.message:
            raise ValueError(f"a budget of {self.budget} tokens is spent on system prompt and message")
        if self.history + self.retrieved > 1 + 1e-9:
            raise ValueError(f"history {self.history} and retrieved {self.retrieved} are more than the whole")
        return self

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return the context and the texts that it needs."""
        room = self.budget - self.system - self.message
        units = within_budget(selected_texts(tables, self.value), int(self.retrieved * room), self.stop_at_overflow)
        recent = recent_history(tables, int(self.history * room))
        rows = pl.concat([units.with_columns(pl.lit(0).alias("part")), recent.with_columns(pl.lit(1).alias("part"))],
                         how="diagonal").sort("question", "part", maintain_order=True)
        once = rows.unique(["question", "shown"], keep="first", maintain_order=True)
        return make_context(once, ["part", "rank", "said_on", "session"], tables)


def recent_history(tables: Tables, room: int) -> pl.DataFrame:
    """Return the last turns before each question that fit into ``room``, one row per session, the newest first.

    Columns: question, corpus, session, said_on, turn, unit (the smallest that covers one of the turns, null where none
    does), shown, tokens. Sessions are whole except the oldest, of which the last turns are shown, under its header.
    """
    rows = newest_first(visible_rows(tables, session_texts(tables)))
    spent = pl.col("tokens").cum_sum().over("question")
    left = room - spent + pl.col("tokens")
    partly = rows.with_columns(left.alias("room")).filter((pl.col("room") >= 0) & (pl.col("tokens") > pl.col("room")))
    return newest_first(pl.concat([rows.filter(spent <= room), last_turns(partly, tables)]))
