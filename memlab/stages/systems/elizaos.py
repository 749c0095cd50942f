"""ElizaOS's memory and RAG: documents of 1,000 characters, RRF, and a threshold that RRF cannot reach.

``conf/system/elizaos.yaml``:

* write: ``chunk``: elizaos, pieces of 1,000 characters with an overlap of 200 (``splitter`` here).
* search: ``dense``: flat, cosine of at least .5. ``lexical``: bm25. Each gives 2 x 20 candidates.
* rank: ``score``: rrf, with a threshold of .6. ``select``: fixed_20.
* read: ``pack``: windows (``budget`` here). ``prompt``: elizaos.

**Splitter.** Separators are the blank line, the newline, the sentence (". ") and the space, but the published loop
stops at the first that yields anything: a paragraph longer than the size stays whole. Segments are joined while they
fit; the next piece begins with the last 200 characters of the one before, cut anywhere.

**Score** of piece m::

    s(m) = 1 / (60 + dense rank of m) + 1 / (60 + lexical rank of m)      kept if s(m) > .6

Ranks count from 1, so s is 2 / 61 = .033 at most, and the filter removes every hit.

**Context.** Of B - 2,000 - 500 tokens (B the budget, less system prompt and message) one half goes to the recent
history, .3 to retrieved pieces and .2 to providers, here the block of ``read/graph``. Filling stops at the first piece
that does not fit.

**Corrected** (elizaos_corrected): the splitter recurses (``write.chunk.length.Recursive`` with the same separators); no
threshold on RRF, so that the semantic search's cosine of .5 is the only filter; a piece that does not fit is skipped.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field, model_validator

from memlab.pipeline.stage import stage
from memlab.pipeline.tables import Tables
from memlab.stages.read import pack
from memlab.stages.read.prompt import Value
from memlab.stages.write.chunk import LengthChunker, Separators, Span
from memlab.store import Store

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

    reads: ClassVar = (*pack.PACK_READS, "questions")
    writes: ClassVar = pack.PACK_WRITES
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
        selected = pack.selected_texts(tables, self.value)
        units = pack.within_budget(selected, int(self.retrieved * room), self.stop_at_overflow)
        recent = recent_history(tables, int(self.history * room))
        rows = pl.concat([units.with_columns(pl.lit(0).alias("part")), recent.with_columns(pl.lit(1).alias("part"))],
                         how="diagonal").sort("question", "part", maintain_order=True)
        once = rows.unique(["question", "shown"], keep="first", maintain_order=True)
        return pack.make_context(once, ["part", "rank", "said_on", "session"], tables)


def recent_history(tables: Tables, room: int) -> pl.DataFrame:
    """Return the last turns before each question that fit into ``room``, one row per session, the newest first.

    Columns: question, corpus, session, said_on, turn, unit (the smallest that covers one of the turns, null where none
    does), shown, tokens. Sessions are whole except the oldest, of which the last turns are shown, under its header.
    """
    rows = pack.newest_first(pack.visible_rows(tables, pack.session_texts(tables)))
    spent = pl.col("tokens").cum_sum().over("question")
    left = room - spent + pl.col("tokens")
    partly = rows.with_columns(left.alias("room")).filter((pl.col("room") >= 0) & (pl.col("tokens") > pl.col("room")))
    return pack.newest_first(pl.concat([rows.filter(spent <= room), pack.last_turns(partly, tables)]))


@stage
class FirstSeparator(LengthChunker):
    """ElizaOS's splitter as published; its pieces are the exact characters, spaces included.

    Segments between separators are joined while they fit. When the next one does not fit, the piece is closed, and the
    next piece begins with the last ``overlap`` characters of the closed one (cut anywhere), the separator and the
    segment, whatever size that makes. The flaw is ElizaOS's own: the loop over separators returns after the first that
    yields anything, so a long paragraph is never cut at lines, sentences or words. ``Recursive`` is the corrected form.
    """

    chunking: ClassVar = "elizaos"
    trim: ClassVar = False
    # blank line (between turns, too), line, sentence, word; a later one is used only if those before yield nothing
    separators: Annotated[Separators, Field(min_length=1)] = ("\n\n", "\n", ". ", " ")

    def cut(self, text: str) -> list[Span]:
        r"""Return the pieces of a transcript; a blank one has none.

        >>> FirstSeparator(size=6, overlap=1).cut("aa. bb\n\ncc\n\ndd")
        [(0, 6), (5, 10), (9, 14)]
        """
        if len(text) <= self.size:
            return [(0, len(text))] if text.strip() else []
        joined = next((spans for mark in self.separators if (spans := self._join(text, mark))), [])
        return [(a, b) for a, b in joined if text[a:b].strip()]

    def _join(self, text: str, mark: str) -> list[Span]:
        """Join the segments between the marks; the first segments, if empty, and their marks are left out."""
        pieces: list[Span] = []
        first = stop = at = 0  # the open piece is text[first:stop]; the segment begins at ``at``
        for segment in text.split(mark):
            end = at + len(segment)
            if first == stop:
                first = at
            elif end - first > self.size:
                pieces.append((first, stop))
                first = max(first, stop - self.overlap)
            stop, at = end, end + len(mark)
        return [*pieces, (first, stop)] if first < stop else pieces
