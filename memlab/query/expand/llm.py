"""Further wordings of a question by a chat model: paraphrases, or the variants of RAG-fusion."""

from __future__ import annotations

import json
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from memlab.models.chat.protocol import Chat, Message, Prompt
from memlab.models.chat.replies import parse_json
from memlab.query.decompose.base import READS, WRITES
from memlab.query.expand.rules import Most, Weight, distinct, first_words, with_wordings
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

_LIST = {"type": "array", "items": {"type": "string"}}
SCHEMA = json.dumps({"type": "object", "properties": {"queries": _LIST}, "required": ["queries"],
                     "additionalProperties": False})


@stage
class LLMExpand:
    """Add at most ``most`` wordings of a question that a chat model writes.

    ``paraphrase`` keeps the meaning, ``fusion`` asks for other sides of the question (RAG-fusion: Raudaschl, 2023).
    Before them stand up to ``synonyms`` rewrites by rules (``memlab.query.expand.synonyms``). A reply that cannot be
    read is counted, and adds nothing.
    """

    reads: ClassVar = READS
    writes: ClassVar = WRITES

    chat: Chat
    mode: Literal["paraphrase", "fusion"] = "paraphrase"
    most: Most = 3  # paraphrases a question
    weight: Weight = 0.5  # of each
    synonyms: Annotated[int, Field(ge=0)] = 0  # rewrites by rules beside them: see llm_synonyms
    max_tokens: Annotated[int, Field(ge=1)] = 256  # of a reply: three questions in JSON

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the queries with further wordings (kind "wording"); warns of replies that could not be read."""
        notes, asks = Notes(), first_words(tables)
        system = Message("system", INSTRUCTIONS[self.mode].format(most=self.most) + _REPLY)
        replies = store.completions(self.chat, [
            Prompt((system, Message("user", f"Question: {text}")), schema=SCHEMA, max_tokens=self.max_tokens)
            for text in asks], notes)
        said = [parse_json(reply, SCHEMA) for reply in replies]
        notes.warn(said.count(None), len(asks), "rewordings could not be read; those questions have none by the model")
        found = {text: distinct(text, read["queries"], self.most) for text, read in zip(asks, said) if read is not None}

        def wordings(text: str) -> list[str]:
            both = [*rewrites(text, self.synonyms), *found.get(text, [])]
            return distinct(text, both, self.synonyms + self.most)

        return with_wordings(tables, wordings, self.weight, "wording").updated({"notes": notes.table()})
