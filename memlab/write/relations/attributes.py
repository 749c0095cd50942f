"""States that a text tells of, of which a later one takes the place of an earlier one: slots with one value at a time.

Three kinds: an attribute ("my X is Y", "my X has moved to Y"), a home or an employer ("lives in", "moved to", "works
at"), and a measure that grows or changes ("I have finished 10 videos so far"). What happened once ("I paid 20 dollars")
is no state: two of these add up, and neither is out of date. Rules of ours, English only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

from memlab.write.relations.contradiction import SAME, claims, clauses, parted, sentences, terms_of
from memlab.write.relations.similarity import STOP, stemmed, word_list

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
_WORD = re.compile(r"[\w'-]*\w")
# "three times a week" is a habit, and "at 10:30 pm" an hour of many
_VAGUE = frozenset(word_list("""ago already amazing am around back couple different far feeling few lately last
    least minute minutes moment new next other past pm really recent recently right several since so speak speaking
    thinking time times today total way""")) | {*_SPELT}


class State(NamedTuple):
    """What something is at a time: a slot of a subject, its value, of which kind, and whether a change was told."""

    slot: str
    subject: str
    about: frozenset[str]
    value: frozenset[str]
    kind: str
    changed: bool
    names: frozenset[str] = frozenset()

    def keys(self) -> list[tuple[str, ...]]:
        """What states must share to be compared."""
        return [(self.slot, self.subject, word) for word in (self.about or {""})]

    def against(self, older: State) -> bool:
        """Return whether this takes the place of an older state.

        Same slot, other value, and either a change was told or both values are of one kind (two numbers, two names,
        two weekdays): "my day is long" does not end "my day is good". Measures must count the same thing: half of
        the words around the one with fewer, and of the names around them, where both have some, at least one.
        """
        if self.value & older.value or (self.names and older.names and not self.names & older.names):
            return False
        if self.slot == "measure":
            common, least = len(self.about & older.about), min(len(self.about), len(older.about))
            return bool(self.kind == older.kind and common >= max(1, SAME * least) and (common > 1 or least < 3))
        same = self.about == older.about
        return same and (self.changed or (self.kind == older.kind and self.kind != "thing"))


def states(text: str, speaker: str = "user") -> Iterator[State]:
    """Yield the states that a text tells of.

    >>> [(s.slot, sorted(s.about), sorted(s.value), s.kind) for s in states("My new boss is Ann. I moved to Porto.")]
    [('attribute', ['boss'], ['ann'], 'name'), ('home', [], ['porto'], 'name')]
    """
    who = speaker.lower()
    for clause in clauses(text):
        yield from _attribute(clause, who)
        changed = _CHANGE.search(clause) is not None
        for claim in claims(clause, speaker):
            if claim.slot in ("home", "work") and claim.holds:
                yield State(claim.slot, claim.subject, frozenset(), claim.terms, _kind(clause, claim.terms), changed)
    for sentence in sentences(text):
        yield from _measures(sentence, who)


def _attribute(clause: str, who: str) -> Iterator[State]:
    for pattern in _ATTRIBUTES:
        if (found := pattern.match(clause)) and len(found["what"].split()) <= 8 and not _PAST.search(found["what"]):
            about = terms_of(found["what"], 8) - _VAGUE
            value = terms_of(re.sub(r"^(?:to|in|into|on|onto|under|above|behind|at)\s", "", found["value"], flags=re.I))
            kind = _kind(found["value"], value)
            if kind == "number":
                value = frozenset(word for word in value if _numeral(word))
            if about and value:
                yield State("attribute", who, about, value, kind, _CHANGE.search(clause) is not None)
            return


def _numeral(word: str) -> bool:
    return _NUMBER.search(word) is not None or word in _SPELT


def _kind(said: str, value: frozenset[str]) -> str:
    if any(_numeral(word) for word in value):
        return "number"
    if any(_WEEKDAY.fullmatch(word) for word in value):
        return "weekday"
    return "name" if any(word[0].isupper() and word.lower().rstrip("s") in {v.rstrip("s") for v in value}
                         for word in _WORD.findall(said)) else "thing"


def _measures(sentence: str, who: str) -> Iterator[State]:
    """Yield a state a unit; all numbers of a unit in a sentence are one value, so that told again they are the same."""
    last, before = "", frozenset[str]()
    found: dict[str, State] = {}
    for clause in parted(sentence):
        near, (last, around) = f"{last}, {clause}", (clause, _around(clause))
        if _OWN.search(near) and _STATE.search(near) and not _OTHERS.search(clause):
            names = frozenset(word for word in _WORD.findall(clause)[1:] if word.lower() != word and len(word) > 1)
            for count in _COUNT.finditer(clause):
                number = _SPELT.get(count["number"].lower(), count["number"].replace(",", ""))
                for unit in _units(count["money"], count["number"], count["rest"].lower()):
                    about = around - {unit, "dollar"}
                    about |= before - {unit} if len(about) < 2 else frozenset()
                    same = found.get(unit, State("measure", who, about, frozenset(), unit, True, names))
                    found[unit] = same._replace(value=same.value | {number})
        before = around
    yield from found.values()


def _around(clause: str) -> frozenset[str]:
    """The stems of a clause that say what is counted."""
    return frozenset(stemmed(word) for word in _WORD.findall(clause.lower())
                     if word not in STOP and word not in _VAGUE and not _NUMBER.search(word))


def _units(money: str | None, number: str, rest: str) -> list[str]:
    """Name what a number may count: money, a time, or the next words that say something."""
    counted = list(takewhile(lambda w: not _numeral(w), _WORD.findall(rest)))
    if ":" in number:
        return [] if counted[:1] in (["am"], ["pm"], ["a"], ["p"]) else [":"]
    words = [w for w in counted if w not in STOP and w not in _VAGUE]
    if money or words[:1] in (["dollar"], ["dollars"]):
        return ["$"]
    return [stemmed(w) for w in words[:3]]
