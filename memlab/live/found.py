"""Results of a search as a frame that prints as text, and that makes the context of a prompt."""

from __future__ import annotations

from typing import Any

import polars as pl

from memlab.text.display import plural, sanitise

WIDTH = 160
"""Characters of a text that are printed."""


class Found(pl.DataFrame):
    """Results in the order of their ranks. What polars makes of it (``filter``, ``select``) is a plain frame."""

    def context(self) -> str:
        """Return the texts for a prompt in the order of their ranks, each below its date and with its speaker."""
        return "\n\n".join(self["text"].drop_nulls())

    def __repr__(self) -> str:
        """Return a line for each result: rank, score, day, role, words."""
        return "\n".join([plural(self.height, "result"), *(_line(row) for row in self.iter_rows(named=True))])

    __str__ = __repr__


def _line(row: dict[str, Any]) -> str:
    day = "" if row["said_on"] is None else f"{row['said_on']:%Y-%m-%d}"
    role = f"{row['role']}: " if row["role"] else ""
    words = sanitise(" ".join((row["words"] or "").split()), WIDTH)
    return f"{row['rank']:>3}  {row['score']:6.3f}  {day:10}  {role}{words}"
