"""Top-p over calibrated probabilities: the share of a question's expected evidence that is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import Field

from memlab.learn.probability.stage import CrossFitProbability, LoadedProbability
from memlab.rank.adaptive_k import TopP
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables


@stage(sees=("gold",), fits="all")
class CalibratedTopP:
    """Select the most probable units that hold a share ``p`` of the question's expected number of evidence units."""

    writes: ClassVar = ("ranking",)
    adaptive: ClassVar = True  # K differs by question: compared with a token-matched twin

    probability: CrossFitProbability | LoadedProbability
    p: Annotated[float, Field(gt=0, lt=1)] = 0.5

    @property
    def reads(self) -> tuple[str, ...]:
        """Tables of the probability: a saved fit reads no gold."""
        return self.probability.reads

    def variations(self) -> Iterator[TopP]:
        """Yield the rule with other shares, for a ranking that has ``probability``."""
        return self._rule().variations()

    def _rule(self) -> TopP:
        return TopP(p=self.p, over="probability")

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the ranking with ``probability`` and ``selected``."""
        return self._rule().run(self.probability.run(tables, store), store)
