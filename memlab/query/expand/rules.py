"""Paraphrases of a question by rules, as further queries: synonyms and a statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated

from pydantic import Field

from memlab.query.decompose.base import QueryAdder, add_queries, query_texts
from memlab.query.expand.statement import statement
from memlab.query.expand.synonyms import inject_synonyms, rewrites
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables
from memlab.text.unicode import printable_line

Weight = Annotated[float, Field(gt=0, le=1)]
"""The weight of each further query; the question has weight 1."""

Most = Annotated[int, Field(ge=1)]


@stage
class RuleExpand(QueryAdder):
    """Add at most ``most`` paraphrases of a question by rules.

    With ``statement``, the first is the question as the statement that would answer it. Rewrites with synonyms follow,
    or with ``inject`` the question followed by all its synonyms.
    """

    most: Most = 2  # rewrites per question, at most; few words have a third synonym
    weight: Weight = 0.5  # two of them weigh as much as the question
    statement: bool = False
    inject: bool = False

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the queries and their paraphrases (kind "wording")."""
        return add_paraphrases(tables, self._paraphrases, self.weight, "wording")

    def _paraphrases(self, question: str) -> list[str]:
        statements = [statement(question)] if self.statement else []
        others = [inject_synonyms(question)] if self.inject else rewrites(question, self.most)
        return distinct(question, [*statements, *others], self.most)


def add_paraphrases(tables: Tables, paraphrase: Callable[[str], Sequence[str]], weight: float, kind: str) -> Tables:
    """Add paraphrases of each question's first query, not of sub-queries, each with ``weight`` times its weight."""
    first = tables["queries"]["question"].is_first_distinct()
    added = [paraphrase(text) if is_first else [] for text, is_first in zip(query_texts(tables), first)]
    return add_queries(tables, added, [weight] * len(added), kind)


def question_texts(tables: Tables) -> list[str]:
    """Return the distinct texts of the questions' first queries."""
    first = tables["queries"]["question"].is_first_distinct()
    return list(dict.fromkeys(text for text, is_first in zip(query_texts(tables), first) if is_first))


def distinct(question: str, phrases: Iterable[str], most: int) -> list[str]:
    """Return at most ``most`` phrases, each on one line, that differ from the question and from one another.

    >>> distinct("Who is Ann?", ["who is  Ann?", "Ann is", "", "ann is", "about Ann", "Ann"], 2)
    ['Ann is', 'about Ann']
    """
    kept = {question.casefold(): ""}
    for phrase in phrases:
        if line := printable_line(phrase):
            kept.setdefault(line.casefold(), line)
    return list(kept.values())[1 : most + 1]
