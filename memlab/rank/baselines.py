"""Baselines that ignore the question: a random order, and length.

Both rank every unit that the question may see. A technique that does not beat them has learnt the style of evidence.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import polars as pl

from memlab.data.numbering import question_digests
from memlab.rank.score import project
from memlab.rank.units import Level, ranked
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables, as_of, with_text


@stage
class RandomScore:
    """Rank in a random order, which depends on the question and the seed."""

    reads: ClassVar = ("questions", "memories", "sessions", "turns")
    writes: ClassVar = ("units", "ranking")

    level: Level = "auto"  # compare with arms of the same level
    seed: int = 0

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return ``units`` (all of the level) and ``ranking``."""
        units, visible = candidates(self.level, tables)
        pairs = visible.select("question", "unit").unique().sort("question", "unit")
        digest_of = dict(question_digests(tables["questions"], tables["turns"]).iter_rows())
        sizes = pairs.group_by("question", maintain_order=True).len().iter_rows()
        chance = np.concatenate([np.zeros(0), *(np.random.default_rng([self.seed, int(digest_of[q], 16)]).random(n)
                                                for q, n in sizes)])
        return Tables(units=units, ranking=ranked(pairs.with_columns(pl.Series("score", chance))))


@stage
class LengthBaseline:
    """Rank by the number of characters of the longest memory of a unit, in the same order for all questions."""

    reads: ClassVar = ("questions", "memories", "sessions", "turns", "texts")
    writes: ClassVar = ("units", "ranking")

    level: Level = "auto"  # compare with arms of the same level

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return ``units`` (all of the level) and ``ranking``."""
        units, visible = candidates(self.level, tables)
        values = with_text(tables["memories"].select("memory", "value_id"), tables["texts"], "value_id")
        scores = visible.join(values, on="memory").group_by("question", "unit").agg(
            pl.col("text").str.len_chars().max().cast(pl.Float64).alias("score"))
        return Tables(units=units, ranking=ranked(scores))


def candidates(level: Level, tables: Tables) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return all units, and (question, memory, unit) for all memories that a question may see.

    Raises MemlabError if memories of several kinds would be ranked at level memory.
    """
    questions, memories = tables["questions"], tables["memories"]
    units, members = project(level, memories, tables)
    visible = questions.select("question", "corpus", "asked_on").join(
        memories.select("memory", "corpus", "said_on"), on="corpus").filter(as_of())
    return units, visible.select("question", "memory").join(members, on="memory")
