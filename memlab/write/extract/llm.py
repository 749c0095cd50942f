"""Facts, entities and relationships by a chat model: one request per session, as in RAG Memory Provider v1."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, cast, get_args

from pydantic import Field

from memlab.errors import MemlabError
from memlab.models.chat.protocol import Chat, Completion, Message, Prompt
from memlab.models.chat.replies import MARGIN, parse_json, trim
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Notes, Tables
from memlab.write.extract.base import Category, Entity, Extract, ExtractedFact, Kind, Link, Source, Talk, clean, talks
from memlab.write.extract.placement import Extractor

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

ASKED = "Conversation:\n{turns}"

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
"""Fewest tokens of a conversation for which a request makes sense."""


def reading(reply: Completion) -> tuple[Any, bool]:
    """Return the value of a reply, or None, and whether it was cut off and only its whole items are kept."""
    value = parse_json(reply, SCHEMA)
    if value is not None:
        return value, False
    text = reply.text[: reply.text.rfind("}") + 1]
    for tail in ("]}", '], "relationships": []}', '], "entities": [], "relationships": []}'):
        value = parse_json(Completion(text + tail, 0, 0, 0.0), SCHEMA)
        if value is not None:
            return value, True
    return None, False


def extract(lists: Any, talk: Talk, shown: range) -> Extract:
    """Turn a parsed reply about the turns ``shown`` (positions in the session) into an extract.

    Prompts number turns from 1. A fact that names none of the turns shown goes to the turn with which it shares most
    words, or to all of them if it shares none. If all turns of a fact have one role, that is its source, whatever the
    reply says. Blank texts and repeated facts are left out.
    """
    facts: dict[str, ExtractedFact] = {}
    for item in lists["facts"]:
        text = clean(item["fact"])
        turns = sorted({int(n) - 1 for n in item["turns"]} & {*shown}) or _alike(text, talk, shown)
        roles = {talk[p].role for p in turns}
        source = cast(Source, roles.pop() if len(roles) == 1 else item["source"])
        if _WORD.search(text):
            facts.setdefault(text.casefold(), ExtractedFact(text, tuple(turns), item["category"], source))
    entities = [Entity(clean(e["name"]), e["kind"], clean(e["summary"])) for e in lists["entities"]]
    links = [Link(clean(r["source"]), clean(r["relation"]), clean(r["target"]), clean(r["when"]) or None)
             for r in lists["relationships"]]
    return Extract(tuple(facts.values()), tuple(dict.fromkeys(e for e in entities if e.name)),
                   tuple(dict.fromkeys(r for r in links if r.source and r.relation and r.target)))


def _alike(fact: str, talk: Talk, shown: range) -> list[int]:
    words = {*_words(fact)}
    shared = Counter({p: len(words & {*_words(talk[p].line)}) for p in shown})
    best = max(shared.values(), default=0)
    return [next(p for p in shown if shared[p] == best)] if best else [*shown]


def _words(text: str) -> Iterator[str]:
    return (match[0].casefold() for match in _WORD.finditer(text))


@stage
class LLMExtract(Extractor):
    """Extract facts, entities and links by a chat model, once per session however many haystacks hold it.

    The prompt has neither date nor id; times stay in the facts as they were said. A session that does not fit the
    model's window beside the longest reply (``max_tokens``) is sent in parts, and a turn longer than a part is cut.
    Of a reply that was cut off, whole items count. Turns whose reply cannot be parsed keep their raw memories.
    """

    chat: Chat
    # of a reply: some 20 facts; what is cut off is lost, and counted
    max_tokens: Annotated[int, Field(ge=1)] = 1024

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return memories, entities and links; warns of what was cut, split or unreadable."""
        notes = Notes()
        sessions, slots = talks(tables)
        extracts = self._extracts(sessions, store, notes)
        return self.placed(tables, sessions, slots, extracts).updated({"notes": notes.table()})

    def _extracts(self, sessions: Sequence[Talk], store: Store, notes: Notes) -> list[Extract]:
        room = self.chat.window - self.max_tokens - MARGIN - self.chat.count(INSTRUCTION + ASKED)
        if room < LEAST:
            raise MemlabError(f"a window of {self.chat.window} tokens leaves {max(room, 0)} for a conversation beside "
                              f"the instruction and a reply of {self.max_tokens}", where="write/extract",
                              fix="serve the model with a longer context (chat.window), or lower max_tokens")
        split = [self._parts(talk, room) for talk in sessions]
        parts = [(talk, part) for talk, some in zip(sessions, split) for part in some]
        notes.warn(sum(len(some) > 1 for some in split), len(sessions),
                   "sessions were asked about in parts, since the model's window does not hold them")
        asked = [self._lines(talk, part, room) for talk, part in parts]
        notes.warn(sum(cut for _, cut in asked), len(parts),
                   "parts of sessions hold one turn that was cut to the model's window")
        replies = store.completions(self.chat, [
            Prompt((Message("system", INSTRUCTION), Message("user", ASKED.format(turns=turns))), schema=SCHEMA,
                   max_tokens=self.max_tokens) for turns, _ in asked], notes)
        read = [reading(reply) for reply in replies]
        notes.warn(sum(value is None for value, _ in read), len(read),
                   "extractions could not be read; those turns keep their raw memories")
        notes.warn(sum(cut for _, cut in read), len(read),
                   "extractions were cut off at max_tokens; what was whole is kept")
        extracts = iter([Extract(unread=(*part,)) if value is None else extract(value, talk, part)
                         for (value, _), (talk, part) in zip(read, parts)])
        return [_joined([next(extracts) for _ in some]) for some in split]

    def _parts(self, talk: Talk, room: int) -> list[range]:
        """Split a session's turns (positions) into parts that fit, in order; a turn too long is a part."""
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

    def _lines(self, talk: Talk, part: range, room: int) -> tuple[str, bool]:
        """Return the numbered turns of a part, and whether they had to be cut."""
        whole = "".join(_line(talk, p) for p in part)
        if len(part) == 1 and self.chat.count(whole) > room:
            return trim(self.chat, whole, room), True
        return whole, False


def _line(talk: Talk, position: int) -> str:
    return f"{position + 1}. {talk[position].line}\n"


def _joined(parts: Sequence[Extract]) -> Extract:
    """Put together what was extracted from the parts of a session."""
    facts = {f.text.casefold(): f for one in reversed(parts) for f in reversed(one.facts)}
    return Extract(tuple(reversed(facts.values())), tuple(e for one in parts for e in one.entities),
                   tuple(dict.fromkeys(r for one in parts for r in one.links)),
                   tuple(p for one in parts for p in one.unread))
