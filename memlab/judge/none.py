"""No judge: answers stay unjudged."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from memlab.judge.cases import READS
from memlab.stage import stage
from memlab.tables import Tables, empty

if TYPE_CHECKING:
    from memlab.store import Store


@stage
class NoJudge:
    """Give no verdict."""

    reads: ClassVar = READS
    writes: ClassVar = ("verdicts",)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return a table of verdicts without rows."""
        return Tables(verdicts=empty("verdicts"))
