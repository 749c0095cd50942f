"""Further wordings of a question as queries beside it, made by rules: synonyms and a statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from memlab.query.decompose.base import READS, WRITES, with_queries, worded
from memlab.query.expand.statement import statement
from memlab.query.expand.synonyms import injected, rewrites
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables

Weight = Annotated[float, Field(gt=0, le=1)]
"""What each further query weighs, the question being 1: never more than the question."""

Most = Annotated[int, Field(ge=1)]


@stage
class RuleExpand:
    """Add at most ``most`` wordings of a question that rules know; one for which they know none stays alone.

    First, with ``statement``, the question as the statement that would answer it, then rewrites with synonyms. With
    ``inject`` there is one wording in the place of these rewrites: the question with all its synonyms behind it.
    """

    reads: ClassVar = READS
    writes: ClassVar = WRITES

    most: Most = 2  # rewrites a question, at most; few words have a third synonym
    weight: Weight = 0.5  # of each; two of them weigh what the question does
    statement: bool = False
    inject: bool = False  # true: see synonyms_inject

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the queries with further wordings (kind "wording") behind them."""
        return with_wordings(tables, self._wordings, self.weight, "wording")

    def _wordings(self, question: str) -> list[str]:
        told = [statement(question)] if self.statement else []
        words = [injected(question)] if self.inject else rewrites(question, self.most)
        return distinct(question, [*told, *words], self.most)


def with_wordings(tables: Tables, wordings: Callable[[str], Sequence[str]], weight: float, kind: str) -> Tables:
    """Add the wordings of each question's first query, not those of sub-queries; each weighs ``weight`` times it."""
    first = tables["queries"]["question"].is_first_distinct()
    said = [wordings(text) if own else [] for text, own in zip(worded(tables), first)]
    return with_queries(tables, said, [weight] * len(said), kind)


def first_words(tables: Tables) -> list[str]:
    """Return the distinct texts of the questions' first queries."""
    first = tables["queries"]["question"].is_first_distinct()
    return list(dict.fromkeys(text for text, own in zip(worded(tables), first) if own))


def distinct(question: str, phrases: Iterable[str], most: int) -> list[str]:
    """Return at most ``most`` phrases, each on one line, that differ from the question and from one another.

    >>> distinct("Who is Ann?", ["who is  Ann?", "Ann is", "", "ann is", "about Ann", "Ann"], 2)
    ['Ann is', 'about Ann']
    """
    kept = {question.casefold(): ""}
    for phrase in phrases:
        line = one_line(phrase)
        if line:
            kept.setdefault(line.casefold(), line)
    return list(kept.values())[1 : most + 1]


def one_line(text: str) -> str:
    """Return a text without control characters, its white space single blanks."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
