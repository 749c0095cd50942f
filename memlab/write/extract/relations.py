"""Relationships by rules: a few verbs between a name (or "I", or "my sister") and what follows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memlab.write.extract.base import Link
from memlab.write.extract.entities import EMPTY, KIN, NOT_NAMES, OPENING, STOP, THINGS

_NAME = r"[A-Z\u00c0-\u00de][\w-]+(?: [A-Z\u00c0-\u00de][\w-]+)?"
_WHO = rf"(?P<who>\bI|\b[Mm]y [a-z]+(?: {_NAME})?|\b{_NAME})"
_ADVERBS = r"(?: (?:just|really|also|finally|actually|recently|still|currently|now|always|absolutely))*"
_WHAT = r"(?P<what>[\w'&$-]+(?: [\w'&$-]+){0,5})"

_VERBS: tuple[tuple[str, str], ...] = (
    ("lives in", r"liv(?:e|es|ed|ing) (?:in|near)"),
    ("works at", r"work(?:s|ed|ing)? (?:at|for)"),
    ("married to", r"(?:got )?married to"),
    ("moved from", r"moved(?: here| away| back)? from"),
    ("moved to", r"moved(?: here from [\w' -]{1,40}?| from [\w' -]{1,40}?| back)? to"),
    ("owns", r"(?:owns?|adopted|bought|purchased|got(?= (?:an?|my) new )|"
             rf"(?:have|has)(?= (?:an?|two|three|four) (?:[a-z]+ )?(?:{'|'.join(sorted(THINGS))})\b))"),
    ("likes", r"(?:love|loves|like|likes|enjoy|enjoys|prefer|prefers|adore|adores)"),
    ("dislikes", r"(?:hate|hates|dislike|dislikes|can't stand)"),
)
_PATTERNS = tuple((relation, re.compile(rf"{_WHO}(?:'m|'ve| am| is| was| have| has)?{_ADVERBS} (?:{verb})\s+{_WHAT}"))
                  for relation, verb in _VERBS)
_KIN = re.compile(rf"\b[Mm]y (?:[a-z]+ )?(?P<what>{'|'.join(sorted(KIN))}),? (?P<who>{_NAME})\b")
_HINT = re.compile(r"\b(?:liv|work|married|move|own|adopt|bought|purch|ha[vs]|got|lov|like|enjoy|prefer|adore|hate|"
                   r"dislike|stand)")


def links(sentence: str, speaker: str, names: frozenset[str], about_speaker: bool = True) -> Iterator[Link]:
    """Yield the relationships in a sentence between the speaker ("I"), the speaker's kin ("my sister"), and ``names``.

    Without ``about_speaker`` (an assistant's turn) "I" and "my" do not count. Questions and negations have no links.

    >>> found = links("I moved from Rome to Oslo with my sister Emma.", "Ann", frozenset())
    >>> [(r.source, r.relation, r.target) for r in found]
    [('Ann', 'moved from', 'Rome'), ('Ann', 'moved to', 'Oslo'), ('Ann', 'has sister', 'Emma')]
    """
    if sentence.endswith("?"):
        return
    if _HINT.search(sentence):
        for relation, pattern in _PATTERNS:
            for match in pattern.finditer(sentence):
                source, target = _source(match["who"], speaker, names, about_speaker), _target(match["what"])
                if source and target:
                    yield Link(source, relation, target)
    if about_speaker and "my " in sentence.lower():
        for match in _KIN.finditer(sentence):
            if match["who"] not in NOT_NAMES:
                yield Link(speaker, f"has {match['what']}", match["who"])


def _source(who: str, speaker: str, names: frozenset[str], about_speaker: bool) -> str | None:
    if who == "I":
        return speaker if about_speaker else None
    if who[:3].lower() == "my ":
        return f"{speaker}'s {who[3:]}" if about_speaker else None
    return who if who in names else None


def _target(what: str) -> str:
    words = what.split(" ")
    while words and words[0].lower() in OPENING:
        words.pop(0)
    if words and words[0].lower() in EMPTY:
        return ""
    end = next((i for i, word in enumerate(words) if word.lower() in STOP), len(words))
    return re.sub(r"(?:'s|'|-)$", "", " ".join(words[:end][:4]))
