"""No reader: the pipeline ends with the context."""

from __future__ import annotations

from typing import ClassVar

from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables, empty


@stage
class NoReader:
    """Ask nobody."""

    reads: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar = ("answers",)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return answers without rows."""
        return Tables(answers=empty("answers"))
