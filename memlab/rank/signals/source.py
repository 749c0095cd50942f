"""Signal: the authority of those who said a memory."""

from __future__ import annotations

from typing import Annotated

import polars as pl
from pydantic import Field

from memlab.rank.signals.helpers import PAIR, on_units
from memlab.stage import stage
from memlab.tables import SESSION, Tables

DOCUMENTS = (".md", ".txt", ".pdf", ".docx", ".json")


@stage
class Source:
    """The highest authority among the speakers and sources of a unit's memories; 0 for those not named.

    Gimli's session versus memory source: a document comes before talk. The speaker of a document's turns is its path
    (``data=documents``, ``data=scenarios``).
    """

    name: str = "source"
    # end of a speaker's name -> authority in [0, 1]
    speakers: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(
        default_factory=lambda: dict.fromkeys(DOCUMENTS, 1.0))
    # source of a memory (user, assistant, conversation) -> authority
    sources: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(default_factory=dict)

    def values(self, tables: Tables) -> pl.DataFrame:
        """Return (question, unit, value)."""
        ends = [pl.when(pl.col("speaker").str.to_lowercase().str.ends_with(end.lower())).then(value).otherwise(0.0)
                for end, value in self.speakers.items()]
        value = pl.max_horizontal(pl.lit(0.0), *ends).fill_null(0.0).alias("value")
        spoken = tables["turns"].select(*SESSION, "turn", value)
        memories = tables["memories"].select("memory", *SESSION, pl.col("turns").alias("turn"), "source")
        sources = memories.select("memory", pl.col("source").replace_strict(
            self.sources, default=0.0, return_dtype=pl.Float64).alias("value"))
        speakers = memories.explode("turn").join(spoken, on=[*SESSION, "turn"]).select("memory", "value")
        authority = pl.concat([sources, speakers]).group_by("memory").agg(pl.col("value").max())
        values = on_units(tables).join(authority, on="memory").group_by(PAIR).agg(pl.col("value").max())
        return tables["ranking"].select(PAIR).join(values, on=PAIR, how="left", maintain_order="left").with_columns(
            pl.col("value").fill_null(0.0))
