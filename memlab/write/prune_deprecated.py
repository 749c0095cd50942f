"""Memories that say of themselves that they no longer hold are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import polars as pl

from memlab.stage import stage
from memlab.tables import Tables
from memlab.write.prune import without

if TYPE_CHECKING:
    from memlab.store import Store

_WORDS = "deprecated|obsolete|superseded"
MARKED = (rf"(?im)^\W*(?:\w+:\s+)?\W*(?:{_WORDS})\b\s*(?:[\])}}:*\u2014-]|by\b|$)|[\[(<{{](?:{_WORDS})\b|"
          rf"\bstatus\s*[:=]\s*\W?(?:{_WORDS})\b|"
          rf"\bthis\s(?:\w+\s)?(?:note|document|page|section|memory|information|entry|guide|version)\s(?:is|has\sbeen)\s"
          rf"(?:now\s)?(?:{_WORDS})\b")
"""A mark, not a mention: at a line's beginning, in brackets, as a status, or said of the note itself."""


@stage
class Deprecated:
    """Leave out memories whose shown text is marked deprecated, obsolete or superseded (Gimli's recommendation).

    A memory is marked by its own text, so nothing is used that was not known when it was said.
    """

    reads: ClassVar = ("texts", "memories", "edges")
    writes: ClassVar = ("memories", "edges")

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the memories that are not marked, and the edges between them."""
        return without(tables, deprecated(tables["memories"], tables["texts"]))


def deprecated(memories: pl.DataFrame, texts: pl.DataFrame) -> pl.Series:
    """Tell which memories are marked, (n,)."""
    shown = memories.select(pl.col("value").alias("hash")).join(texts, on="hash", how="left", maintain_order="left")
    return shown["text"].fill_null("").str.contains(MARKED)
