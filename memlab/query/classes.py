"""The classes of questions as a table, so that every technique that differs by class asks the same classifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import polars as pl

from memlab.query.classify import classify
from memlab.stage import stage
from memlab.tables import Tables, frame

if TYPE_CHECKING:
    from memlab.store import Store

READS = ("questions", "texts")
WRITES = ("classes",)


def by_words(tables: Tables, tell: Callable[[str], Sequence[str]]) -> Tables:
    """Return ``classes``: what ``tell`` says of each question's words, its first class first."""
    worded = tables["questions"].select("question", pl.col("text").alias("hash")).join(
        tables["texts"], on="hash", how="left", maintain_order="left").select("question", pl.col("text").fill_null(""))
    rows = [(question, name) for question, words in worded.iter_rows() for name in tell(words)]
    return Tables(classes=frame("classes", {"question": [q for q, _ in rows], "class": [name for _, name in rows]}))


@stage
class Rules:
    """memlab's own rules over the words of a question: one class each (``memlab.query.classify``)."""

    reads: ClassVar = READS
    writes: ClassVar = WRITES

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the class of every question."""
        return by_words(tables, lambda question: (classify(question),))
