"""No memory at all: what the reader knows by itself, and what questions give away."""

from __future__ import annotations

from typing import ClassVar

from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables, empty


@stage
class Nothing:
    """Show nothing."""

    reads: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar = ("context",)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return a context without rows."""
        return Tables(context=empty("context"))
