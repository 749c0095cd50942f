"""Paraphrases of a question, or the variants of RAG-fusion, by a chat model."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from memlab.models.chat.protocol import Chat
from memlab.query.decompose.base import QueryAdder
from memlab.query.decompose.llm import ask_for_queries
from memlab.query.expand.rules import Most, Weight, add_paraphrases, distinct, question_texts
from memlab.query.expand.synonyms import rewrites
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Notes, Tables

_REPLY = ' Keep every name, number and date. Reply as JSON: {"queries": ["...", "..."]}.'

INSTRUCTIONS = {
    "paraphrase": "You help to search a person's past conversations. Put the question into other words, {most} times: "
                  "the same meaning, but words that the person may have used when they told of it.",
    "fusion": "You help to search a person's past conversations. Write {most} different search queries for the "
              "question, each from another side of it: what was done, with whom or where, what came of it.",
}
"""The task of the model, by mode."""


@stage
class LLMExpand(QueryAdder):
    """Add at most ``most`` queries that a chat model writes.

    ``paraphrase`` keeps the meaning, ``fusion`` asks for other sides of the question (RAG-fusion: Raudaschl, 2023).
    Up to ``synonyms`` rewrites by rules (``memlab.query.expand.synonyms``) precede them. An unreadable reply is counted
    and adds nothing.
    """

    chat: Chat
    mode: Literal["paraphrase", "fusion"] = "paraphrase"
    most: Most = 3  # queries per question
    weight: Weight = 0.5
    synonyms: Annotated[int, Field(ge=0)] = 0  # rewrites by rules
    max_tokens: Annotated[int, Field(ge=1)] = 256  # per reply: three questions in JSON

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the queries and their paraphrases (kind "wording"); warn of replies that could not be read."""
        notes, questions = Notes(), question_texts(tables)
        system = INSTRUCTIONS[self.mode].format(most=self.most) + _REPLY
        rewordings = ask_for_queries(
            store, self.chat, system, questions, self.max_tokens, notes,
            "rewordings could not be read; those questions have none by the model")

        def paraphrase(text: str) -> list[str]:
            by_model = distinct(text, rewordings.get(text, []), self.most)
            return distinct(text, [*rewrites(text, self.synonyms), *by_model], self.synonyms + self.most)

        return add_paraphrases(tables, paraphrase, self.weight, "wording").updated({"notes": notes.table()})
