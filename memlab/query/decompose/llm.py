"""Sub-queries by a chat model, one for each fact that an answer needs."""

from __future__ import annotations

import json
from typing import Annotated, ClassVar

from pydantic import Field

from memlab.models.chat.protocol import Chat, Message, Prompt
from memlab.models.chat.replies import parse_json
from memlab.query.decompose.base import READS, WRITES, Share, add_parts, one_line, query_texts
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Notes, Tables

INSTRUCTION = """You prepare searches in a person's past conversations. You are given one question. If its \
answer has to be put together from several separate facts (things compared, two events between which time \
passed, items to be counted or summed), write one short search phrase for each of them, {most} at most; for a \
count, one for each kind of item that the question names. A phrase must be understood without the question and \
name what the question names. If one fact answers the question, reply with an empty list. Reply as JSON: \
{{"queries": ["...", "..."]}}."""

_LIST = {"type": "array", "items": {"type": "string"}}
SCHEMA = json.dumps({"type": "object", "properties": {"queries": _LIST}, "required": ["queries"],
                     "additionalProperties": False})


@stage
class LLMDecompose:
    """Add the search phrases that a chat model writes for a question, at most ``most``.

    A single phrase, or the question itself, adds nothing. So does an unreadable reply, which is counted.
    """

    reads: ClassVar = READS
    writes: ClassVar = WRITES

    chat: Chat
    share: Share = 1.0
    most: Annotated[int, Field(ge=2)] = 4  # more parts than that are drift
    max_tokens: Annotated[int, Field(ge=1)] = 192  # per reply: four phrases in JSON

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the queries with sub-queries behind them; warns of replies that could not be read."""
        notes, texts = Notes(), query_texts(tables)
        distinct = list(dict.fromkeys(texts))
        system = Message("system", INSTRUCTION.format(most=self.most))
        replies = store.completions(self.chat, [
            Prompt((system, Message("user", f"Question: {text}")), schema=SCHEMA, max_tokens=self.max_tokens)
            for text in distinct], notes)
        parsed = [parse_json(reply, SCHEMA) for reply in replies]
        notes.warn(parsed.count(None), len(distinct),
                   "decompositions could not be read; those questions are searched as a whole")
        parts = {text: self._parts(text, read["queries"]) for text, read in zip(distinct, parsed) if read is not None}
        added = add_parts(tables, [parts.get(text, []) for text in texts], self.share)
        return added.updated({"notes": notes.table()})

    def _parts(self, question: str, phrases: list[str]) -> list[str]:
        distinct = dict.fromkeys(map(one_line, phrases))
        parts = [p for p in distinct if p and p.casefold() != question.casefold()][: self.most]
        return parts if len(parts) > 1 else []
