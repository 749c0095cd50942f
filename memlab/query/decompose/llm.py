"""Sub-queries by a chat model, one for each fact that an answer needs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from memlab.models.chat.protocol import Chat, Message, Prompt
from memlab.models.chat.replies import parse_json
from memlab.query.decompose.base import QueryAdder, Share, add_parts, query_texts
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Notes, Tables
from memlab.text.fence import NOTE, fence_data
from memlab.text.unicode import printable_line

INSTRUCTION = """You prepare searches in a person's past conversations. You are given one question. If its \
answer has to be put together from several separate facts (things compared, two events between which time \
passed, items to be counted or summed), write one short search phrase for each of them, {most} at most; for a \
count, one for each kind of item that the question names. A phrase must be understood without the question and \
name what the question names. If one fact answers the question, reply with an empty list. Reply as JSON: \
{{"queries": ["...", "..."]}}."""

_LIST = {"type": "array", "items": {"type": "string"}}
SCHEMA = json.dumps({"type": "object", "properties": {"queries": _LIST}, "required": ["queries"],
                     "additionalProperties": False})


def ask_for_queries(store: Store, chat: Chat, system: str, questions: Sequence[str], max_tokens: int, notes: Notes,
                    failure: str) -> dict[str, list[str]]:
    """Return the queries that a chat model writes for each question; unreadable replies are counted as ``failure``."""
    prompts = [Prompt((Message("system", f"{system}\n{NOTE}"), Message("user", fence_data({"QUESTION": text}))),
                      schema=SCHEMA, max_tokens=max_tokens) for text in questions]
    replies = [parse_json(reply, SCHEMA) for reply in store.completions(chat, prompts, notes)]
    notes.warn(replies.count(None), len(questions), failure)
    return {text: reply["queries"] for text, reply in zip(questions, replies) if reply is not None}


@stage
class LLMDecompose(QueryAdder):
    """Add the search phrases that a chat model writes for a question, at most ``most``.

    A single phrase, or the question itself, adds nothing. So does an unreadable reply, which is counted.
    """

    chat: Chat
    share: Share = 1.0
    most: Annotated[int, Field(ge=2)] = 4  # more parts than that are drift
    max_tokens: Annotated[int, Field(ge=1)] = 192  # per reply: four phrases in JSON

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the queries and their sub-queries; warn of replies that could not be read."""
        notes, texts = Notes(), query_texts(tables)
        phrases = ask_for_queries(
            store, self.chat, INSTRUCTION.format(most=self.most), list(dict.fromkeys(texts)), self.max_tokens, notes,
            "decompositions could not be read; those questions are searched as a whole")
        parts = [self._parts(text, phrases.get(text, [])) for text in texts]
        return add_parts(tables, parts, self.share).updated({"notes": notes.table()})

    def _parts(self, question: str, phrases: list[str]) -> list[str]:
        distinct = dict.fromkeys(map(printable_line, phrases))
        parts = [p for p in distinct if p and p.casefold() != question.casefold()][: self.most]
        return parts if len(parts) > 1 else []
