"""Who answers which question: one reader for all, or specialists."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from memlab.query.classify import classify
from memlab.read.prompt import PromptTemplate
from memlab.stage import stage


@runtime_checkable
class Agents(Protocol):
    """The choice of a template by the words of a question."""

    def template(self, question: str, usual: PromptTemplate) -> PromptTemplate:
        """Return the template to put this question with; ``usual`` is the reader's own."""
        ...


@stage
class OneReader:
    """Every question is put with the reader's own template."""

    def template(self, question: str, usual: PromptTemplate) -> PromptTemplate:  # noqa: ARG002
        """Return the usual template."""
        return usual


@stage
class Routed:
    """Counting and temporal questions go to specialists, all others to the reader's own template.

    The class is told from the question's words by rules (``memlab.query.classify``), never from a benchmark's label.
    OltraMem's report has such agents lose 8 points.
    """

    counting: PromptTemplate
    temporal: PromptTemplate

    def template(self, question: str, usual: PromptTemplate) -> PromptTemplate:
        """Return the specialist's template, or the usual one."""
        return {"counting": self.counting, "temporal": self.temporal}.get(classify(question), usual)
