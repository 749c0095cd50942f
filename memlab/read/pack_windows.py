"""A token budget shared out: so much for what was retrieved, so much for the latest talk, the rest for others."""

from __future__ import annotations

from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field, model_validator

from memlab.read.pack import PACK_READS, PACK_WRITES, chosen, in_order, within
from memlab.read.pack_everything import so_far
from memlab.read.render import HEADER, Value
from memlab.read.tokens import count_tokens
from memlab.speech import BETWEEN, spoken
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables

_SESSION = ["corpus", "session"]
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
    budget: Annotated[int, Field(ge=1)] = 8000
    system: Annotated[int, Field(ge=0)] = 2000
    message: Annotated[int, Field(ge=0)] = 500
    history: Share = 0.5
    retrieved: Share = 0.3
    stop_at_overflow: bool = True

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

    Columns: question, corpus, session, said_on, turn (the first shown), unit (the smallest that covers one of the
    turns, null where none does), shown, tokens. A session pays for its header with its last turn.
    """
    lines = spoken(tables["turns"], tables["texts"]).select(
        *_SESSION, "turn", "line", count_tokens(pl.col("line")).alias("cost"))
    sizes = lines.group_by(_SESSION).agg(pl.col("cost").sum())
    header = pl.col("said_on").dt.strftime(HEADER).fill_null("")
    # whole sessions first, so that the turns of a long corpus are not paired with every question
    near = (_sorted(so_far(tables, tables["sessions"].join(sizes, on=_SESSION)))
            .filter(pl.col("cost").cum_sum().over("question") - pl.col("cost") <= room)
            .select("question", *_SESSION, "said_on", header.alias("header")))
    left = _sorted(near.join(lines, on=_SESSION), turn=True)
    last = pl.int_range(pl.len()).over("question", *_SESSION) == 0
    cost = pl.col("cost") + pl.when(last).then(count_tokens(pl.col("header"))).otherwise(0)
    cover = tables["units"].explode("turns").group_by(*_SESSION, pl.col("turns").alias("turn")).agg(
        pl.col("unit").min())
    kept = left.filter(cost.cum_sum().over("question") <= room).join(
        cover, on=[*_SESSION, "turn"], how="left", maintain_order="left")
    said = pl.col("line").reverse().str.join(BETWEEN)
    rows = kept.group_by("question", *_SESSION, "said_on", maintain_order=True).agg(
        pl.col("turn").min(), pl.col("unit").min(), (pl.col("header").first() + said).alias("shown"))
    return rows.with_columns(count_tokens(pl.col("shown")).alias("tokens"))


def _sorted(rows: pl.DataFrame, turn: bool = False) -> pl.DataFrame:
    """Put rows into the order of the talk, backwards; what has no date comes last."""
    by = ["said_on", "session", *(["turn"] if turn else [])]
    return rows.sort("question", *by, descending=[False, *(True for _ in by)], nulls_last=True)
