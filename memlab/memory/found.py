"""Results of a search as a frame that prints as text, and that makes the context of a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from memlab.pipeline.transcript import TURN_SEPARATOR
from memlab.stages.read.prompt import HEADER
from memlab.support.text.display import plural, safe_line

NOTHING = "nothing relevant was found"
"""What a search says without a result: no text fits, or the pipeline's gate is shut."""

WIDTH = 160
"""Characters of a text that are printed."""


class Found(pl.DataFrame):
    """Results in the order of their ranks. What polars makes of it (``filter``, ``select``) is a plain frame."""

    def context(self) -> str:
        """Return the texts for a prompt in the order of their ranks, each below its date and with its speaker."""
        date = pl.col("date").cast(pl.Datetime("us"))  # rows without any date or speaker have columns without a type
        speaker = pl.format("{}: ", pl.col("speaker").cast(pl.String))
        texts = date.dt.strftime(HEADER).fill_null("") + speaker.fill_null("") + pl.col("text").cast(pl.String)
        return TURN_SEPARATOR.join(self.select(texts).to_series().drop_nulls())

    def __repr__(self) -> str:
        """Return a line for each result: rank, score, day, speaker, text; and its reply; other rows are a table."""
        if not {"rank", "score", "date", "speaker", "text"} <= {*self.columns}:
            return str(pl.DataFrame(self))
        head = plural(self.height, "result") if self.height else NOTHING
        return "\n".join([head, *(_line(row) for row in self.iter_rows(named=True))])

    __str__ = __repr__


def _line(row: Mapping[str, Any]) -> str:
    day = "" if row["date"] is None else f"{row['date']:%Y-%m-%d}"
    reply = f"\n{'':23}{safe_line(reply_of(row), WIDTH)}" if row.get("reply") else ""
    return f"{row['rank']:>3}  {row['score']:6.3f}  {day:10}  {safe_line(line_of(row), WIDTH)}{reply}"


def line_of(row: Mapping[str, Any]) -> str:
    """Return the text of a result in one line, after its speaker."""
    speaker = f"{row['speaker']}: " if row["speaker"] else ""
    return speaker + " ".join((row["text"] or "").split())


def reply_of(row: Mapping[str, Any]) -> str:
    """Return the reply to a result that asks, in one line; empty without one."""
    return " ".join((row.get("reply") or "").split())
