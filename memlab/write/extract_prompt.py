"""What a chat model is told when it extracts from a session, and what is kept of its reply."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, cast, get_args

from memlab.models.chat import Completion
from memlab.replies import json_in
from memlab.write.facts import Category, Entity, Extract, Fact, Kind, Link, Source, Talk, clean

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


def reading(reply: Completion) -> tuple[Any, bool]:
    """Return the value of a reply, or None, and whether it was cut off and only its whole items are kept."""
    said = json_in(reply, SCHEMA)
    if said is not None:
        return said, False
    text = reply.text[: reply.text.rfind("}") + 1]
    for tail in ("]}", '], "relationships": []}', '], "entities": [], "relationships": []}'):
        said = json_in(Completion(text + tail, 0, 0, 0.0), SCHEMA)
        if said is not None:
            return said, True
    return None, False


def extract(said: Any, talk: Talk, shown: range) -> Extract:
    """Make a read reply about the turns ``shown`` (positions in the session) an extract.

    In the prompt turns are numbered from 1. A fact whose numbers name no turn that was shown is given to the turn with
    which it shares most words, and to all that were shown where it shares none. The source of a fact whose turns have
    one role is that role, whatever the reply says. Blank texts are left out, repeated facts are one.
    """
    facts: dict[str, Fact] = {}
    for item in said["facts"]:
        text = clean(item["fact"])
        turns = sorted({int(n) - 1 for n in item["turns"]} & {*shown}) or _alike(text, talk, shown)
        roles = {talk[p].role for p in turns}
        source = cast(Source, roles.pop() if len(roles) == 1 else item["source"])
        if _WORD.search(text):
            facts.setdefault(text.casefold(), Fact(text, tuple(turns), item["category"], source))
    entities = [Entity(clean(e["name"]), e["kind"], clean(e["summary"])) for e in said["entities"]]
    links = [Link(clean(r["source"]), clean(r["relation"]), clean(r["target"]), clean(r["when"]) or None)
             for r in said["relationships"]]
    return Extract(tuple(facts.values()), tuple(dict.fromkeys(e for e in entities if e.name)),
                   tuple(dict.fromkeys(r for r in links if r.source and r.relation and r.target)))


def _alike(fact: str, talk: Talk, shown: range) -> list[int]:
    words = {*_words(fact)}
    shared = Counter({p: len(words & {*_words(talk[p].line)}) for p in shown})
    best = max(shared.values(), default=0)
    return [next(p for p in shown if shared[p] == best)] if best else [*shown]


def _words(text: str) -> Iterator[str]:
    return (found[0].casefold() for found in _WORD.finditer(text))
