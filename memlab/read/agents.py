"""Who answers which question: one reader for all, or specialists."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from memlab.query.class_names import KIN
from memlab.read.prompt import PromptTemplate
from memlab.stage import stage


@runtime_checkable
class Agents(Protocol):
    """The choice of a template by the class of a question."""

    def template(self, kind: str, usual: PromptTemplate) -> PromptTemplate:
        """Return the template for a question of this class, "" where it has none; ``usual`` is the reader's own."""
        ...


@stage
class OneReader:
    """Every question is put with the reader's own template."""

    def template(self, kind: str, usual: PromptTemplate) -> PromptTemplate:  # noqa: ARG002
        """Return the usual template."""
        return usual


@stage
class Routed:
    """Counting and temporal questions go to specialists, all others to the reader's own template.

    The class is what query/classify told of the question. One over several sessions goes to the specialist for
    counting (``memlab.query.class_names``). OltraMem's report has such agents lose 8 points.
    """

    counting: PromptTemplate
    temporal: PromptTemplate

    def template(self, kind: str, usual: PromptTemplate) -> PromptTemplate:
        """Return the specialist's template, or the usual one."""
        return {"counting": self.counting, "temporal": self.temporal}.get(KIN.get(kind, kind), usual)
