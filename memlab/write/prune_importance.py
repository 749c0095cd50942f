"""How important a memory is, told from its words when it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import polars as pl

from memlab.stage import stage
from memlab.tables import SCHEMAS, Tables
from memlab.write.relate_near import STOP, WORD

if TYPE_CHECKING:
    from memlab.store import Store

ASKED = (r"(?i)\b(?:remember|don['\u2019]t forget|do not forget|important|never forget|keep in mind|note that|"
         r"make sure|must not|urgent|critical)\b")
VITAL = (r"(?i)\b(?:allerg\w+|medication|diagnos\w+|doctor|surgery|emergency|passport|password|insurance|birthday|"
         r"anniversary|wedding|deadline|married|pregnant|died|funeral)\b")
PERSONAL = (r"(?i)\b(?:my|our)\s\w+(?:\s\w+){0,4}\s(?:is|are|was)\b|\bI['\u2019]m\b|"
            r"\bI (?:live|work|prefer|never|always|moved|was born|am)\b")
PLAIN, SMALL, STEP, FEW = 0.4, 0.1, 0.2, 3


@stage
class Importance:
    """Write ``memories.importance`` in [0, 1]; nothing is left out. Rules of ours: no system publishes its own.

    .4 for a plain memory; .2 more for each of: asked to be remembered or called important, vital matters (health,
    papers, dates that come back), a lasting statement on the speaker; .1 for fewer than 3 key words ("Thanks a lot!").
    A value that an extractor has given stays.
    """

    reads: ClassVar = ("texts", "memories")
    writes: ClassVar = ("memories",)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the memories with their importance."""
        weighed = importance(tables["memories"], tables["texts"])
        return Tables(memories=tables["memories"].with_columns(weighed).select(list(SCHEMAS["memories"])))


def importance(memories: pl.DataFrame, texts: pl.DataFrame) -> pl.Series:
    """Return the importance of memories, (n,): their own where they have one, else by the rules.

    >>> from memlab.tables import frame, texts_frame
    >>> said = texts_frame(["Thanks a lot!", "Please remember I'm allergic to wool.", "We talked about tents today."])
    >>> importance(frame("memories", {"memory": [0, 1, 2], "value": said["hash"]}), said).round(1).to_list()
    [0.1, 1.0, 0.4]
    """
    shown = memories.select("importance", pl.col("value").alias("hash")).join(
        texts, on="hash", how="left", maintain_order="left").with_columns(pl.col("text").fill_null(""))
    text = pl.col("text")
    words = text.str.to_lowercase().str.extract_all(WORD).list.set_difference(list(STOP)).list.len()
    rules = pl.when(words < FEW).then(SMALL).otherwise(
        PLAIN + STEP * pl.sum_horizontal(text.str.contains(p).cast(pl.Float64) for p in (ASKED, VITAL, PERSONAL)))
    return shown.select(pl.coalesce("importance", rules).alias("importance")).to_series()
