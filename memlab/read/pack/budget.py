"""A token budget shared out: so much for what was retrieved, so much for the latest talk, the rest for others."""

from __future__ import annotations

from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field, model_validator

from memlab.read.pack.by_rank import PACK_READS, PACK_WRITES, chosen, in_order, within
from memlab.read.pack.full_context import ends, newest_first, so_far, whole_sessions
from memlab.read.render import Value
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables

Share = Annotated[float, Field(ge=0, le=1)]


@stage
class Windows:
    """Share ``budget`` tokens, less those of system prompt and message, among what was retrieved and recent history.

    ElizaOS gives 50 % to recent history, 30 % to what was retrieved and 20 % to its providers, for which a block that
    read/graph adds stands here: that share is left free. Filling with retrieved units goes by rank and, with
    ``stop_at_overflow``, ends at the first that does not fit; without it that one is passed over.

    History is the last turns of the corpus as of the question's day, back to the first that does not fit: it has no
    holes, and may hold what was retrieved as well, since the two are filled apart. Shown are the retrieved units by
    rank, then history in the order of time, a row a session, nearest to the question; where the reader's window is
    too small, the oldest history gives way first.
    """

    reads: ClassVar = (*PACK_READS, "questions")
    writes: ClassVar = PACK_WRITES
    value: Value = "unit"
    budget: Annotated[int, Field(ge=1)] = 8000  # tokens in all; ElizaOS leaves it to the model
    system: Annotated[int, Field(ge=0)] = 2000  # of these for the system prompt
    message: Annotated[int, Field(ge=0)] = 500  # and for the message
    history: Share = 0.5  # share of what is left for the last turns before the question
    retrieved: Share = 0.3  # share for what was retrieved
    stop_at_overflow: bool = True  # filling stops at the first that does not fit; false: passes it over

    @model_validator(mode="after")
    def _shares_fit(self) -> Windows:
        if self.budget <= self.system + self.message:
            raise ValueError(f"a budget of {self.budget} tokens is spent on system prompt and message")
        if self.history + self.retrieved > 1 + 1e-9:
            raise ValueError(f"history {self.history} and retrieved {self.retrieved} are more than the whole")
        return self

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return the context and the texts that it needs."""
        room = self.budget - self.system - self.message
        found = within(chosen(tables, self.value), int(self.retrieved * room), self.stop_at_overflow)
        recent = latest(tables, int(self.history * room))
        rows = pl.concat([found.with_columns(pl.lit(0).alias("part")), recent.with_columns(pl.lit(1).alias("part"))],
                         how="diagonal").sort("question", "part", maintain_order=True)
        once = rows.unique(["question", "shown"], keep="first", maintain_order=True)
        return in_order(once, ["part", "rank", "said_on", "session"], tables)


def latest(tables: Tables, room: int) -> pl.DataFrame:
    """Return the last turns before each question that fit into ``room``, a row a session, the newest first.

    Columns: question, corpus, session, said_on, turn, unit (the smallest that covers one of the turns, null where none
    does), shown, tokens. Sessions are whole but for the oldest, of which the last turns are shown, under its header.
    """
    rows = newest_first(so_far(tables, whole_sessions(tables)))
    spent = pl.col("tokens").cum_sum().over("question")
    left = room - spent + pl.col("tokens")
    partly = rows.with_columns(left.alias("room")).filter((pl.col("room") >= 0) & (pl.col("tokens") > pl.col("room")))
    return newest_first(pl.concat([rows.filter(spent <= room), ends(partly, tables)]))
