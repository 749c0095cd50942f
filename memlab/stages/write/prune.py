"""Pruning of memories: old ones that are neither important nor often accessed, and deprecated ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime
from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field

from memlab.pipeline.stage import stage
from memlab.pipeline.tables import SCHEMAS, Tables, with_text
from memlab.stages.write.contradiction import STOP, WORD
from memlab.store import Store

ASKED = (r"(?i)\b(?:remember|don['\u2019]t forget|do not forget|important|never forget|keep in mind|note that|"
         r"make sure|must not|urgent|critical)\b")
VITAL = (r"(?i)\b(?:allerg\w+|medication|diagnos\w+|doctor|surgery|emergency|passport|password|insurance|birthday|"
         r"anniversary|wedding|deadline|married|pregnant|died|funeral)\b")
PERSONAL = (r"(?i)\b(?:my|our)\s\w+(?:\s\w+){0,4}\s(?:is|are|was)\b|\bI['\u2019]m\b|"
            r"\bI (?:live|work|prefer|never|always|moved|was born|am)\b")
# only marks, no mentions: at the beginning of a line, in brackets, as a status, or about the note itself
_WORDS = "deprecated|obsolete|superseded"
MARKED = (rf"(?im)^\W*(?:\w+:\s+)?\W*(?:{_WORDS})\b\s*(?:[\])}}:*\u2014-]|by\b|$)|[\[(<{{](?:{_WORDS})\b|"
          rf"\bstatus\s*[:=]\s*\W?(?:{_WORDS})\b|"
          rf"\bthis\s(?:\w+\s)?(?:note|document|page|section|memory|information|entry|guide|version)\s(?:is|has\sbeen)\s"
          rf"(?:now\s)?(?:{_WORDS})\b")
PLAIN, SMALL, STEP, FEW = 0.4, 0.1, 0.2, 3


@stage
class RuleImportance:
    """Write ``memories.importance`` in [0, 1]; no memory is removed. The rules are ours: no system publishes its own.

    .4 for a plain memory; .2 more for each of: a request to remember it or the word "important", vital matters (health,
    papers, yearly dates), a lasting fact about the speaker; .1 for fewer than 3 key words ("Thanks a lot!"). An
    importance that a memory already has stays.
    """

    reads: ClassVar = ("texts", "memories")
    writes: ClassVar = ("memories",)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the memories with their importance."""
        values = importance(tables["memories"], tables["texts"])
        return Tables(memories=tables["memories"].with_columns(values).select(list(SCHEMAS["memories"])))


def importance(memories: pl.DataFrame, texts: pl.DataFrame) -> pl.Series:
    """Return the importance of memories, (n,): the one that they have, else by the rules.

    >>> from memlab.pipeline.tables import frame, texts_frame
    >>> texts = texts_frame(["Thanks a lot!", "Please remember I'm allergic to wool.", "We talked about tents today."])
    >>> importance(frame("memories", {"memory": [0, 1, 2], "value_id": texts["text_id"]}), texts).round(1).to_list()
    [0.1, 1.0, 0.4]
    """
    text = pl.col("text").fill_null("")
    words = text.str.to_lowercase().str.extract_all(WORD).list.set_difference(list(STOP)).list.len()
    rules = pl.when(words < FEW).then(SMALL).otherwise(
        PLAIN + STEP * pl.sum_horizontal(text.str.contains(p).cast(pl.Float64) for p in (ASKED, VITAL, PERSONAL)))
    shown = with_text(memories, texts, "value_id")
    return shown.select(pl.coalesce("importance", rules).alias("importance")).to_series()


@stage
class Prune(ABC):
    """Base of the stages that remove memories, and the edges from and to them; the others keep their ids."""

    reads: ClassVar[tuple[str, ...]] = ("texts", "memories", "edges")
    writes: ClassVar = ("memories", "edges")

    @abstractmethod
    def select_outdated(self, tables: Tables) -> pl.Series:
        """Return which memories to remove, (n,)."""

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the memories that stay, and the edges between them."""
        kept = tables["memories"].filter(~self.select_outdated(tables))
        ids = kept["memory"].implode()
        return Tables(memories=kept, edges=tables["edges"].filter(pl.col("source").is_in(ids),
                                                                  pl.col("target").is_in(ids)))


@stage
class Age(Prune):
    """ElizaOS: memories older than ``days`` are removed, unless of high importance or accessed often.

    Age counts to the day of the corpus's earliest question; a later day would remove memories that this question may
    use. So later questions of a corpus keep some memories that daily pruning would have removed. With one day per
    corpus, as in benchmarks, this is exact. In a corpus without dated questions, age counts to the newest session.

    Access counts exist only in a live memory; in experiments no memory was accessed before.
    """

    reads: ClassVar[tuple[str, ...]] = ("questions", *Prune.reads)
    days: Annotated[int, Field(ge=1)] = 90  # age at the earliest question of the corpus
    important: Annotated[float, Field(ge=0)] = 0.6  # memories of at least this importance stay; above 1: none

    def select_outdated(self, tables: Tables) -> pl.Series:
        """Return which memories are too old and not important, (n,)."""
        memories = tables["memories"]
        first = tables["questions"].group_by("corpus").agg(pl.col("asked_on").min())
        now = memories.select("corpus", "said_on").join(first, on="corpus", how="left", maintain_order="left").select(
            pl.coalesce("asked_on", pl.col("said_on").max().over("corpus")))["asked_on"]
        return removable(memories, now, self.days, importance(memories, tables["texts"]) >= self.important)


def removable(memories: pl.DataFrame, now: datetime | pl.Series, days: int, important: pl.Series,
              accessed: pl.Series | None = None, times: int = 0) -> pl.Series:
    """Return which memories may be removed, (n,).

    These are older than ``days`` calendar days at ``now`` (one time, or one per memory), not ``important`` (n,), and
    were accessed (n,) at most ``times`` times. Memories without a date stay.

    >>> from memlab.pipeline.tables import frame
    >>> dated = frame("memories", {"memory": [0, 1, 2], "said_on": [datetime(2023, 1, d) for d in (1, 2, 2)]})
    >>> removable(dated, datetime(2023, 1, 31), 28, pl.Series([True, False, False]), pl.Series([0, 0, 3]), 2).to_list()
    [False, True, False]
    """
    today = now if isinstance(now, pl.Series) else pl.repeat(now, memories.height, dtype=pl.Datetime("us"), eager=True)
    age = (today.dt.date() - memories["said_on"].dt.date()).dt.total_days()
    seldom = True if accessed is None else accessed.fill_null(0) <= times
    return ((age > days).fill_null(False) & ~important.fill_null(False) & seldom).alias("removable")


@stage
class Deprecated(Prune):
    """Remove memories whose value is marked deprecated, obsolete or superseded (Gimli's recommendation).

    The mark is in the memory's own text, so pruning uses nothing from after its date.
    """

    def select_outdated(self, tables: Tables) -> pl.Series:
        """Return which memories are marked, (n,)."""
        return with_text(tables["memories"], tables["texts"], "value_id")["text"].fill_null("").str.contains(MARKED)
