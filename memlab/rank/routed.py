"""A scorer of its own for each class of question."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import polars as pl
from pydantic import Field, model_validator

from memlab.query.class_names import KIN, first_of
from memlab.rank.score import lanes_of
from memlab.rank.scorer import Scorer
from memlab.rank.signals.units import known_classes
from memlab.rank.units import Level, ranked
from memlab.stage import stage
from memlab.tables import Tables, empty

if TYPE_CHECKING:
    from memlab.store import Store


@stage
class Routed:
    """Rank as ``rank/score`` does, questions of a class by the scorer of that class, the others by ``usual``.

    A question's class is its first in the table ``classes`` (slot query/classify), by the names of
    ``memlab.query.class_names``; a class without a route takes that of its kin, if there is one. The queries of one
    question are fused with the ``rrf_k`` of ``usual``.
    """

    reads: ClassVar = ("hits", "queries", "memories", "sessions", "turns", "classes")
    writes: ClassVar = ("units", "ranking")

    routes: dict[str, Scorer] = Field(min_length=1)
    usual: Scorer = Scorer()
    level: Level = "auto"

    @model_validator(mode="after")
    def _classes_are_known(self) -> Routed:
        known_classes(tuple(self.routes))
        return self

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return ``units`` (all of the level) and ``ranking``."""
        units, signals = lanes_of(tables, self.level, self.usual.rrf_k)
        lanes = [c for c in signals.columns if c not in ("question", "unit")]
        if not lanes:
            return Tables(units=units, ranking=empty("ranking"))
        route = {question: name if name in self.routes else KIN.get(name, "")
                 for question, name in first_of(tables["classes"]).items()}
        routed = pl.DataFrame({"question": list(route), "route": list(route.values())},
                              schema={"question": pl.Int32, "route": pl.String})
        rows = signals.join(routed, on="question", how="left", maintain_order="left")
        scored = [scorer.scored(rows.filter(pl.col("route") == name).drop("route"), lanes)
                  for name, scorer in self.routes.items()]
        unrouted = ~pl.col("route").is_in(list(self.routes)).fill_null(False)
        scored.append(self.usual.scored(rows.filter(unrouted).drop("route"), lanes))
        return Tables(units=units, ranking=ranked(pl.concat(scored)))
