"""Signal: units of the category or source that questions of a class need."""

from __future__ import annotations

import polars as pl
from pydantic import Field, model_validator

from memlab.rank.signals.helpers import PAIR, Classes, flagged, on_units, placed
from memlab.stage import Names, stage
from memlab.tables import SESSION, Tables


@stage
class Category:
    """1 for units with a memory of one of the ``categories`` or ``sources``, else 0.

    Units of questions of none of the ``classes`` have ``otherwise``: 0 for a factor, which then does nothing, 1 for a
    floor, which then keeps all. Without classes the signal is for every question. If no memory of a unit has a source
    (user, assistant, document), the roles of its turns count.
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
        labelled = on_units(tables).join(tables["memories"].select("memory", "source", "category"), on="memory")
        extracted = labelled.filter(pl.col("source") != "conversation")
        spoken = placed(tables).join(extracted, on=PAIR, how="anti").explode("turns").join(
            tables["turns"], left_on=[*SESSION, "turns"], right_on=[*SESSION, "turn"])
        fits = pl.concat([
            labelled.filter(pl.col("category").is_in(list(self.categories))).select(PAIR),
            extracted.filter(pl.col("source").is_in(list(self.sources))).select(PAIR),
            spoken.filter(pl.col("role").is_in(list(self.sources))).select(PAIR),
        ])
        return flagged(tables, fits, self.classes, self.otherwise)
