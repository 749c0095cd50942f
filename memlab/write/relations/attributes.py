"""States that a text mentions: slots with one value at a time, so that a later state replaces an earlier one.

Three kinds: an attribute ("my X is Y", "my X has moved to Y"), a home or an employer ("lives in", "moved to", "works
at"), and a measure that grows or changes ("I have finished 10 videos so far"). A single event ("I paid 20 dollars") is
no state: two of these add up, and neither is out of date. The rules are ours and English only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

from memlab.write.relations.contradiction import SAME, claims, clauses, sentences, split_clauses, terms_of
from memlab.write.relations.similarity import STOP, stem

_SPELT = {word: str(n) for n, word in enumerate((
    "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"), 2)}
_SPELT |= {"once": "1", "twice": "2", "fifteen": "15", "twenty": "20", "thirty": "30", "forty": "40", "fifty": "50"}
_CHANGE = re.compile(r"\b(?:now|new|no longer|any ?more|moved?|switched|changed|currently|these days|instead|just|"
                     r"recently|lately|nowadays|by now)\b", re.I)
_PAST = re.compile(r"\b(?:old|previous|former|first|last|earlier|ex|childhood|other|another)\b", re.I)
_WEEKDAY = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b", re.I)
_NUMBER = re.compile(r"\d")

_ATTRIBUTES = tuple(re.compile(pattern, re.I) for pattern in (
    r"^(?:my|our)\s(?P<what>[\w' -]+?)\s(?:is|are)\s(?:now\s)?(?:called\s|named\s)?(?P<value>.+)$",
    r"^(?:my|our)\s(?P<what>[\w' -]+?)\s(?:has\s|have\s)?(?:just\s|recently\s)?(?:moved|changed|switched)\s"
    r"(?:to|from\s.+\sto)\s(?P<value>.+)$",
    r"^(?:my|our)\s(?P<what>[\w' -]+?)\s(?:holds|costs|stands\sat|amounts\sto|comes\sto)\s(?P<value>.+)$",
    r"^(?:i|we)\s(?:have\s)?(?:just\s|recently\s)?(?:moved|put|keep|kept|store|stored|hung)\s(?:my|our|the)\s"
    r"(?P<what>[\w' -]+?)\s(?P<value>(?:to|in|into|on|onto|under|above|behind|at)\s.+)$"))

_OWN = re.compile(r"(?<!of )\b(?:i|we|my|our)\b", re.I)
_STATE = re.compile(r"\b(?:so far|now|currently|already|in total|in all|at the moment|these days|lately|record|best|"
                    r"highest|lowest|score|in the past few|since i|i (?:have|own|pay|earn|weigh)|"
                    r"we (?:have|own|pay|earn))\b", re.I)
_OTHERS = re.compile(r"^(?:the|his|her|their|an?)\s.*\bof\s(?:my|our|an?|his|her|their)\b", re.I)
_COUNT = re.compile(r"(?P<money>\$)?(?<![\w.,$-])(?P<number>\d[\d,]*(?::\d\d)?(?:\.\d+)?(?:-\d+)?|"
                    rf"{'|'.join(_SPELT)})(?![\w-])(?=(?P<rest>(?:\s[\w'-]+){{0,5}}))", re.I)
_WORD = re.compile(r"(?<![\w'-])[\w'-]*\w")  # once for each run of letters and marks
# words that do not name what a number counts
_VAGUE = frozenset(re.findall(r"\S+", """ago already amazing am around back couple different far feeling few lately last
    least minute minutes moment new next other past pm really recent recently right several since so speak speaking
    thinking time times today total way""")) | {*_SPELT}


class State(NamedTuple):
    """The value of a subject's slot, what it is about (words, names), and whether the text mentions a change."""

    slot: str
    subject: str
    about: frozenset[str]
    value: frozenset[str]
    kind: str
    changed: bool
    names: frozenset[str] = frozenset()

    def keys(self) -> list[tuple[str, ...]]:
        """Return the keys of which two states must share one to be compared."""
        return [(self.slot, self.subject, word) for word in (self.about or {""})]

    def against(self, older: State) -> bool:
        """Return whether this state replaces an older one.

        The slot is the same, the value another, and either the text mentions a change or both values are of one kind
        (two numbers, two names, two weekdays): "my day is long" does not end "my day is good". Measures must count the
        same thing: they share half of the words of the one with fewer, and at least one name where both have names.
        """
        if self.value & older.value or (self.names and older.names and not self.names & older.names):
            return False
        if self.slot == "measure":
            common, least = len(self.about & older.about), min(len(self.about), len(older.about))
            return bool(self.kind == older.kind and common >= max(1, SAME * least) and (common > 1 or least < 3))
        same = self.about == older.about
        return same and (self.changed or (self.kind == older.kind and self.kind != "thing"))


def states(text: str, speaker: str = "user") -> Iterator[State]:
    """Yield the states that a text mentions.

    >>> [(s.slot, sorted(s.about), sorted(s.value), s.kind) for s in states("My new boss is Ann. I moved to Porto.")]
    [('attribute', ['boss'], ['ann'], 'name'), ('home', [], ['porto'], 'name')]
    """
    subject = speaker.lower()
    for clause in clauses(text):
        yield from _attribute(clause, subject)
        changed = _CHANGE.search(clause) is not None
        for claim in claims(clause, speaker):
            if claim.slot in ("home", "work") and claim.holds:
                yield State(claim.slot, claim.subject, frozenset(), claim.terms, _kind(clause, claim.terms), changed)
    for sentence in sentences(text):
        yield from _measures(sentence, subject)


def _attribute(clause: str, subject: str) -> Iterator[State]:
    for pattern in _ATTRIBUTES:
        if (match := pattern.match(clause)) and len(match["what"].split()) <= 8 and not _PAST.search(match["what"]):
            about = terms_of(match["what"], 8) - _VAGUE
            value = terms_of(re.sub(r"^(?:to|in|into|on|onto|under|above|behind|at)\s", "", match["value"], flags=re.I))
            kind = _kind(match["value"], value)
            if kind == "number":
                value = frozenset(filter(_is_number, value))
            if about and value:
                yield State("attribute", subject, about, value, kind, _CHANGE.search(clause) is not None)
            return


def _is_number(word: str) -> bool:
    return _NUMBER.search(word) is not None or word in _SPELT


def _kind(text: str, value: frozenset[str]) -> str:
    if any(map(_is_number, value)):
        return "number"
    if any(map(_WEEKDAY.fullmatch, value)):
        return "weekday"
    return "name" if any(word[0].isupper() and word.lower().rstrip("s") in {v.rstrip("s") for v in value}
                         for word in _WORD.findall(text)) else "thing"


def _measures(sentence: str, subject: str) -> Iterator[State]:
    """Yield one state per unit; all numbers of a unit are one value, so that a repeated sentence has the same one."""
    previous, before = "", frozenset[str]()
    by_unit: dict[str, State] = {}
    for clause in split_clauses(sentence):
        both, around = f"{previous}, {clause}", _key_stems(clause)
        if _OWN.search(both) and _STATE.search(both) and not _OTHERS.search(clause):
            names = frozenset(word for word in _WORD.findall(clause)[1:] if word.lower() != word and len(word) > 1)
            for count in _COUNT.finditer(clause):
                number = _SPELT.get(count["number"].lower(), count["number"].replace(",", ""))
                for unit in _units(count["money"], count["number"], count["rest"].lower()):
                    about = around - {unit, "dollar"}
                    about |= before - {unit} if len(about) < 2 else frozenset()
                    state = by_unit.get(unit, State("measure", subject, about, frozenset(), unit, True, names))
                    by_unit[unit] = state._replace(value=state.value | {number})
        previous, before = clause, around
    yield from by_unit.values()


def _key_stems(clause: str) -> frozenset[str]:
    """Return the stems of a clause that may name what is counted."""
    return frozenset(stem(word) for word in _WORD.findall(clause.lower())
                     if word not in STOP and word not in _VAGUE and not _NUMBER.search(word))


def _units(money: str | None, number: str, rest: str) -> list[str]:
    """Return what a number may count: money, a duration, or up to three of the next words."""
    following = list(takewhile(lambda w: not _is_number(w), _WORD.findall(rest)))
    if ":" in number:
        return [] if following[:1] in (["am"], ["pm"], ["a"], ["p"]) else [":"]
    words = [w for w in following if w not in STOP and w not in _VAGUE]
    if money or words[:1] in (["dollar"], ["dollars"]):
        return ["$"]
    return [stem(w) for w in words[:3]]
