"""Where a memory comes from, and how far that is to be believed."""

from __future__ import annotations

from typing import Annotated

import polars as pl
from pydantic import Field

from memlab.rank.signals.helpers import PAIR, on_units
from memlab.stage import stage
from memlab.tables import Tables

DOCUMENTS = (".md", ".txt", ".pdf", ".docx", ".json")


@stage
class Source:
    """The highest authority among those who say what a unit's memories hold: what is not named has 0.

    Gimli's session versus memory source: a document that somebody has written down comes before talk. ``speakers``
    goes by how a speaker's name ends, since the turns of a document are spoken by its path (``data=documents``,
    ``data=scenarios``); ``sources`` by the memory's source: user, assistant, conversation.
    """

    name: str = "source"
    # end of a speaker's name -> authority in [0, 1]
    speakers: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(
        default_factory=lambda: dict.fromkeys(DOCUMENTS, 1.0))
    # source of a memory (user, assistant) -> authority; what is named nowhere has 0
    sources: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(default_factory=dict)

    def values(self, tables: Tables) -> pl.DataFrame:
        """Return (question, unit, value)."""
        place = ["corpus", "session", "turn"]
        ends = [pl.when(pl.col("speaker").str.to_lowercase().str.ends_with(end.lower())).then(value).otherwise(0.0)
                for end, value in self.speakers.items()]
        spoken = tables["turns"].select(*place, pl.max_horizontal(pl.lit(0.0), *ends).fill_null(0.0).alias("value"))
        memories = tables["memories"].select("memory", "corpus", "session", pl.col("turns").alias("turn"), "source")
        told = memories.select("memory", pl.col("source").replace_strict(
            self.sources, default=0.0, return_dtype=pl.Float64).alias("value"))
        said = memories.explode("turn").join(spoken, on=place).select("memory", "value")
        authority = pl.concat([told, said]).group_by("memory").agg(pl.col("value").max())
        held = on_units(tables).join(authority, on="memory").group_by(PAIR).agg(pl.col("value").max())
        return tables["ranking"].select(PAIR).join(held, on=PAIR, how="left", maintain_order="left").with_columns(
            pl.col("value").fill_null(0.0))
