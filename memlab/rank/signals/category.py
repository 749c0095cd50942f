"""Whether a unit is of the sort that a question of its class wants: a preference, something the assistant said."""

from __future__ import annotations

import polars as pl
from pydantic import Field, model_validator

from memlab.rank.signals.helpers import PAIR, Classes, flagged, on_units, placed
from memlab.stage import Names, stage
from memlab.tables import SESSION, Tables


@stage
class Category:
    """1 for units with a memory of one of the ``categories`` or ``sources``, else 0.

    Questions that are of none of the ``classes`` have ``otherwise`` throughout: 0 for a factor, which then does
    nothing, 1 for a floor, which then lets everything pass. Without classes every question is meant.

    A memory's source is who said it (user, assistant) where an extractor has told, or document. Where none of a
    unit's memories has told, the roles of its turns count: a passage of both is from both.
    """

    name: str = Field(min_length=1)
    classes: Classes = ()
    categories: Names = ()
    sources: Names = ()
    otherwise: float = 0.0

    @model_validator(mode="after")
    def _some_sort(self) -> Category:
        if not (self.categories or self.sources):
            raise ValueError("no sort of memory is named; give categories or sources")
        return self

    def values(self, tables: Tables) -> pl.DataFrame:
        """Return (question, unit, value)."""
        held = on_units(tables).join(tables["memories"].select("memory", "source", "category"), on="memory")
        told = held.filter(pl.col("source") != "conversation")
        spoken = placed(tables).join(told, on=PAIR, how="anti").explode("turns").join(
            tables["turns"], left_on=[*SESSION, "turns"], right_on=[*SESSION, "turn"])
        fits = pl.concat([
            held.filter(pl.col("category").is_in(list(self.categories))).select(PAIR),
            told.filter(pl.col("source").is_in(list(self.sources))).select(PAIR),
            spoken.filter(pl.col("role").is_in(list(self.sources))).select(PAIR),
        ])
        return flagged(tables, fits, self.classes, self.otherwise)
