"""No search in this slot."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from memlab.stage import stage
from memlab.tables import Tables, empty

if TYPE_CHECKING:
    from memlab.store import Store


@stage
class Off:
    """A lane switched off: it finds nothing.

    >>> from memlab.store import Store
    >>> Off().run(Tables(), Store())["hits"].height
    0
    """

    reads: ClassVar = ()
    writes: ClassVar = ("hits",)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002  (the signature is the contract's)
        """Return an empty ``hits`` table."""
        return Tables(hits=empty("hits"))
