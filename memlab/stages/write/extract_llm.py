"""Facts, entities and relationships by a chat model: one request per session, as in RAG Memory Provider v1."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, get_args

from pydantic import Field

from memlab.models.chat.client import ChatSettings
from memlab.models.chat.replies import MARGIN, parse_json, trim
from memlab.models.protocols import Chat, Completion, Message, Prompt
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import Notes
from memlab.pipeline.transcript import NOTE, fence_data
from memlab.stages.write.extract import Category, Entity, Extract, ExtractedFact, Extractor, Kind, Link, Source, Talk
from memlab.store import Store
from memlab.support.errors import MemlabError
from memlab.support.text.display import printable_line
from memlab.support.text.tokenize import pieces

INSTRUCTION = """You write down what is worth remembering of a conversation. Its turns are numbered. Reply as JSON \
with three lists.
facts: what is said about the speakers, their lives, plans, tastes and belongings, and what one of them was told or \
advised, each as one sentence that is understood without the conversation: name the person instead of "I" or "she", \
keep every number, name and word of time ("last Friday") as it was said. One fact a sentence. With each fact: turns, \
the numbers of the turns that say it; source, who says it (user, or assistant; people who talk to each other are both \
users); category, one of preference (likes and dislikes), date (when something is), amount (money, length, weight, \
duration), count (how many), event (what happened or is planned), other.
entities: the people, organizations, locations and objects that matter, each with its name, kind and a summary of \
what is said of it in a sentence or two.
relationships: source and target (names), relation (a few words, such as "works at"), and when as it was said, "" \
where nothing is said of the time.
Use only what the conversation says. Leave out greetings and talk about nothing. Empty lists are right where there \
is nothing to remember."""

_TEXT: dict[str, Any] = {"type": "string"}


def _list_of(**fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "object", "properties": fields, "required": [*fields],
                                       "additionalProperties": False}}


_LISTS = {
    "facts": _list_of(fact=_TEXT, turns={"type": "array", "items": {"type": "integer"}},
                      source={"enum": [*get_args(Source)]}, category={"enum": [*get_args(Category)]}),
    "entities": _list_of(name=_TEXT, kind={"enum": [*get_args(Kind)]}, summary=_TEXT),
    "relationships": _list_of(source=_TEXT, relation=_TEXT, target=_TEXT, when=_TEXT),
}
SCHEMA = json.dumps({"type": "object", "properties": _LISTS, "required": [*_LISTS], "additionalProperties": False})

_WORD = re.compile(r"\w+")

LEAST = 64
"""Least room for a conversation, in tokens."""


def parse_reply(reply: Completion) -> tuple[Any, bool]:
    """Return the value of a reply, or None, and whether the reply was cut off, so that only whole items are in it."""
    value = parse_json(reply, SCHEMA)
    if value is not None:
        return value, False
    text = reply.answer[: reply.answer.rfind("}") + 1]
    for tail in ("]}", '], "relationships": []}', '], "entities": [], "relationships": []}'):
        value = parse_json(Completion(text + tail, 0, 0, 0.0), SCHEMA)
        if value is not None:
            return value, True
    return None, False


def extract(lists: Any, talk: Talk, shown: range) -> Extract:
    """Return the extract in a parsed reply about the turns ``shown`` (positions in the session).

    Prompts number turns from 1. A fact that names none of the turns shown gets the turn with which it shares most
    words, or all of them if it shares none. If all turns of a fact have one role, that role is its source, whatever the
    reply says. Blank texts and repeated facts are left out.
    """
    facts: dict[str, ExtractedFact] = {}
    for item in lists["facts"]:
        text = printable_line(item["fact"])
        turns = sorted({int(n) - 1 for n in item["turns"]} & {*shown}) or _most_similar(text, talk, shown)
        roles = {talk[p].role for p in turns}
        source = roles.pop() if len(roles) == 1 else item["source"]
        if _WORD.search(text):
            facts.setdefault(text.casefold(), ExtractedFact(text, tuple(turns), item["category"], source))
    entities = [Entity(printable_line(e["name"]), e["kind"], printable_line(e["summary"])) for e in lists["entities"]]
    links = [Link(printable_line(r["source"]), printable_line(r["relation"]), printable_line(r["target"]),
                  printable_line(r["when"]) or None) for r in lists["relationships"]]
    return Extract(tuple(facts.values()), tuple(dict.fromkeys(e for e in entities if e.name)),
                   tuple(dict.fromkeys(r for r in links if r.source and r.relation and r.target)))


def _most_similar(fact: str, talk: Talk, shown: range) -> list[int]:
    shared = {p: len(_words(fact) & _words(talk[p].line)) for p in shown}
    best = max(shown, key=shared.__getitem__)
    return [best] if shared[best] else [*shown]


def _words(text: str) -> set[str]:
    return {piece for word in _WORD.findall(text) for piece in pieces(word.casefold())}


@stage
class LLMExtract(Extractor):
    """Extract facts, entities and links by a chat model, once per distinct session.

    The prompt contains neither date nor id; facts keep the session's words of time. A session that does not fit the
    model's window beside the longest reply (``max_tokens``) is sent in parts, and a turn longer than a part is cut. The
    whole items of a reply that was cut off count. Turns whose reply cannot be parsed keep their raw memories.
    """

    chat: Chat
    max_tokens: Annotated[int, Field(ge=1)] = 1024  # per reply: some 20 facts; the rest is lost and counted
    # most requests at a time; null: as many as chat.concurrency
    at_once: Annotated[int, Field(ge=1)] | None = None

    def extracts(self, talks: Sequence[Talk], store: Store, notes: Notes) -> list[Extract]:
        """Return the extract of each distinct session; warn of cut, split and unreadable requests."""
        room = self.chat.window - self.max_tokens - MARGIN - self.chat.count(
            f"{INSTRUCTION}\n{NOTE}{fence_data({'CONVERSATION': ''})}")
        if room < LEAST:
            raise MemlabError(f"a window of {self.chat.window} tokens leaves {max(room, 0)} for a conversation beside "
                              f"the instruction and a reply of {self.max_tokens}", where="write/extract",
                              fix="serve the model with a longer context (chat.window), or lower max_tokens")
        parts_of = [self._parts(talk, room) for talk in talks]
        parts = [(talk, part) for talk, own in zip(talks, parts_of) for part in own]
        notes.warn(sum(len(own) > 1 for own in parts_of), len(talks),
                   "sessions were asked about in parts, since the model's window does not hold them")
        transcripts = [self._transcript(talk, part, room) for talk, part in parts]
        notes.warn(sum(cut for _, cut in transcripts), len(parts),
                   "parts of sessions hold one turn that was cut to the model's window")
        replies = store.completions(self._limit(), [
            Prompt((Message("system", f"{INSTRUCTION}\n{NOTE}"), Message("user", fence_data({"CONVERSATION": turns}))),
                   schema=SCHEMA, max_tokens=self.max_tokens) for turns, _ in transcripts], notes)
        parsed = [parse_reply(reply) for reply in replies]
        notes.warn(sum(value is None for value, _ in parsed), len(parsed),
                   "extractions could not be read; those turns keep their raw memories")
        notes.warn(sum(cut for _, cut in parsed), len(parsed),
                   "extractions were cut off at max_tokens; what was whole is kept")
        extracts = iter([Extract(unread=(*part,)) if value is None else extract(value, talk, part)
                         for (value, _), (talk, part) in zip(parsed, parts)])
        return [_merge([next(extracts) for _ in own]) for own in parts_of]

    def _limit(self) -> Chat:
        """Return the chat model with ``at_once`` requests at a time at most."""
        if self.at_once is None or not isinstance(self.chat, ChatSettings):
            return self.chat
        return replace(self.chat, concurrency=min(self.at_once, self.chat.concurrency))

    def _parts(self, talk: Talk, room: int) -> list[range]:
        """Split a session's turns (positions) into parts that fit, in order; a turn that is too long is a part."""
        costs = [self.chat.count(_line(talk, p)) for p in range(len(talk))]
        if sum(costs) <= room:
            return [range(len(talk))] if any(turn.text.strip() for turn in talk) else []
        parts, start, spent = [], 0, 0
        for p, cost in enumerate(costs):
            if spent + cost > room and p > start:
                parts.append(range(start, p))
                start, spent = p, 0
            spent += cost
        return [*parts, range(start, len(talk))]

    def _transcript(self, talk: Talk, part: range, room: int) -> tuple[str, bool]:
        """Return the numbered turns of a part, and whether they had to be cut."""
        whole = "".join(_line(talk, p) for p in part)
        if len(part) == 1 and self.chat.count(whole) > room:
            return trim(self.chat, whole, room), True
        return whole, False


def _line(talk: Talk, position: int) -> str:
    return f"{position + 1}. {talk[position].line}\n"


def _merge(parts: Sequence[Extract]) -> Extract:
    """Merge the extracts of the parts of a session."""
    facts = {f.text.casefold(): f for one in reversed(parts) for f in reversed(one.facts)}
    return Extract(tuple(reversed(facts.values())), tuple(e for one in parts for e in one.entities),
                   tuple(dict.fromkeys(r for one in parts for r in one.links)),
                   tuple(p for one in parts for p in one.unread))
