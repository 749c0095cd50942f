"""Paraphrases of a question, or the variants of RAG-fusion, by a chat model."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from memlab.models.chat.protocol import Chat, Message, Prompt
from memlab.models.chat.replies import parse_json
from memlab.query.decompose.base import READS, WRITES
from memlab.query.decompose.llm import SCHEMA
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
"""What the model is asked for, by mode."""


@stage
class LLMExpand:
    """Add at most ``most`` queries that a chat model writes.

    ``paraphrase`` keeps the meaning, ``fusion`` asks for other sides of the question (RAG-fusion: Raudaschl, 2023).
    Up to ``synonyms`` rewrites by rules (``memlab.query.expand.synonyms``) precede them. An unreadable reply is counted
    and adds nothing.
    """

    reads: ClassVar = READS
    writes: ClassVar = WRITES

    chat: Chat
    mode: Literal["paraphrase", "fusion"] = "paraphrase"
    most: Most = 3  # queries per question
    weight: Weight = 0.5
    synonyms: Annotated[int, Field(ge=0)] = 0  # rewrites by rules
    max_tokens: Annotated[int, Field(ge=1)] = 256  # per reply: three questions in JSON

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the queries with paraphrases (kind "wording"); warns of replies that could not be read."""
        notes, questions = Notes(), question_texts(tables)
        system = Message("system", INSTRUCTIONS[self.mode].format(most=self.most) + _REPLY)
        replies = store.completions(self.chat, [
            Prompt((system, Message("user", f"Question: {text}")), schema=SCHEMA, max_tokens=self.max_tokens)
            for text in questions], notes)
        parsed = [parse_json(reply, SCHEMA) for reply in replies]
        notes.warn(parsed.count(None), len(questions),
                   "rewordings could not be read; those questions have none by the model")
        written = {text: distinct(text, read["queries"], self.most)
                   for text, read in zip(questions, parsed) if read is not None}

        def paraphrase(text: str) -> list[str]:
            both = [*rewrites(text, self.synonyms), *written.get(text, [])]
            return distinct(text, both, self.synonyms + self.most)

        return add_paraphrases(tables, paraphrase, self.weight, "wording").updated({"notes": notes.table()})
