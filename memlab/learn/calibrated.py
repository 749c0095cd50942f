"""K by an estimated probability that was learned: the estimate and the cut as one stage.

The estimate is fitted on gold of other folds, so the stage lives where gold may be read; the cut itself
(memlab.rank.calibrated) sees the estimate alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from memlab.learn.coverage import CrossFitCoverage, LoadedCoverage
from memlab.rank.calibrated import Calibrated
from memlab.rank.select import Count
from memlab.stage import stage
from memlab.tables import Tables

if TYPE_CHECKING:
    from memlab.store import Store


@stage
class LearnedK:
    """Select the smallest K whose estimated probability of complete evidence reaches ``target``.

    ``coverage`` is fitted across folds of the questions at hand, or loaded from a fit on another benchmark.
    Where no K up to ``max_k`` reaches the target, ``max_k`` units are shown and marked ``unreachable``.
    """

    reads: ClassVar = CrossFitCoverage.reads
    writes: ClassVar = ("ranking",)
    adaptive: ClassVar = True

    coverage: CrossFitCoverage | LoadedCoverage
    target: Annotated[float, Field(gt=0, lt=1)] = 0.9
    min_k: Count = 1
    max_k: Count = 40

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the ranking with ``coverage``, ``selected`` and ``unreachable``."""
        estimated = tables.updated(self.coverage.run(tables, store))
        return Calibrated(self.target, self.min_k, self.max_k).run(estimated, store)
