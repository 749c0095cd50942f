"""The classes of questions as a table, so that every technique that differs by class asks the same classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from memlab.query.classify import classified
from memlab.stage import stage
from memlab.tables import Tables, frame

if TYPE_CHECKING:
    from memlab.store import Store


@stage
class Rules:
    """memlab's own rules over the words of a question: one class each (``memlab.query.classify``)."""

    reads: ClassVar = ("questions", "texts")
    writes: ClassVar = ("classes",)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the class of every question."""
        told = classified(tables["questions"], tables["texts"])
        return Tables(classes=frame("classes", {"question": told["question"], "class": told["class"]}))
