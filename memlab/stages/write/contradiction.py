"""Claims and states of a text, and contradictions between claims.

MemoryStack publishes four templates: prefers / doesn't like; works at / left; lives in / moved from; is / is not. It
does not publish their wording; this one is ours. It is English, so texts in other languages have no claims.

A state is a slot with one value at a time, so that a later state replaces an earlier one. Three kinds: an attribute
("my X is Y", "my X has moved to Y"), a home or an employer ("lives in", "moved to", "works at"), and a measure that
grows or changes ("I have finished 10 videos so far"). A single event ("I paid 20 dollars") is no state: two of these
add up, and neither is out of date. The rules are ours and English only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from typing import NamedTuple

STOP = tuple(re.findall(r"\S+", """
    a about after again all also am an and any are as at be because been before being but by can could
    did do does doing done down for from further get gets getting go going got had has have having he her here hers
    him his how i if im in into is it its ive just let like lot make many maybe me more most much my myself no nor
    not now of off oh ok okay on once one only or other our ours out over own please quite really s same she should
    so some such t than thank thanks that the their them then there these they thing things this those through to
    too under until up us very want was way we well were what when where which while who whom why will with would
    yeah yes you your yours user assistant"""))
"""Stop words; the other words of a text, stemmed, are its key terms."""

WORD = r"[\w']*\w"

SAME = 0.5
"""Two objects are the same if they share at least this part of their words (Jaccard)."""

_EXPANDED = tuple((re.compile(rf"\b{short}\b", re.IGNORECASE), long) for short, long in (
    (r"can't|cannot", "can not"), (r"won't", "will not"), (r"(\w+)n't", r"\1 not"), (r"i'm", "I am"),
    (r"(\w+)'ve", r"\1 have"), (r"(\w+)'re", r"\1 are"), (r"(it|he|she|that|there|what|who)'s", r"\1 is"),
    (r"(\w+)'ll", r"\1 will"), (r"(i|we|he|she|they|you)'d", r"\1 would")))
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_CLAUSE = re.compile(r"[,;:]\s+|(?<!\s)\s+[-\u2013\u2014]\s*|"
                     r"\s(?:and|but|because|so|although|though|while|which|since)\s", re.IGNORECASE)
_LEAD = re.compile(r"^(?:and|but|so|oh|well|yes|no|by the way|actually|also|now|anyway|btw|that)\s+", re.IGNORECASE)
# an object ends where a place, time or reason begins
_TAIL = re.compile(r"\s(?:for|on|when|where|because|since|at|than|after|before|during|in|any ?more|any longer|now|"
                   r"lately|these|this|right|so|by|from|if|though|too|either|again|much|very|last|recently)\b.*", re.I)
_STRIP = "\"'.!?()[]*_ "
_PRONOUNS = frozenset(("it", "this", "that", "there", "what", "he", "she", "they", "you", "which", "who", "here",
                        "everything", "something"))
# states that pass, or mean little alone: "I'm sure" does not contradict last year's "I'm not sure"
_VAGUE = frozenset(re.findall(r"\S+", """
    able aware bit certain concept concerned done excited fan familiar fine good great
    happy idea interested interesting look open option ready sorry sound sure worried"""))

WHO = (r"(?P<who>[Ii]|[Ww]e|(?:[Mm]y|[Oo]ur|[Tt]he)\s[\w-]+(?:\s[A-Z][\w-]+)*|[A-Z][\w-]+(?:\s[A-Z][\w-]+)*)")
ADVERBS = r"(?:\s(?:really|also|still|actually|just|always|usually|now|absolutely|currently|have|has|am|is|recently))*"
_LIKE = r"(?:like|love|prefer|enjoy|adore|eat|drink)s?"
_NOT = r"(?:do|does|did)\snot|no\slonger|never|used\sto"

TEMPLATES: tuple[tuple[str, bool, re.Pattern[str]], ...] = tuple(
    (slot, holds, re.compile(rf"^{WHO}{ADVERBS}\s{verb}\s(?P<what>.+)$")) for slot, holds, verb in (
        ("taste", False, rf"(?:(?:{_NOT})\s(?:\w+ly\s)?{_LIKE}|(?:dislike|hate|avoid)s?|can\snot\sstand)"),
        ("taste", True, _LIKE),
        ("work", False, rf"(?:(?:left|quit|resigned\sfrom|retired\sfrom)(?:\smy\sjob\s(?:at|with))?|"
                        rf"(?:{_NOT})\sworks?\s(?:at|for)|"
                        r"(?:was|were|got)\s(?:laid\soff|fired)\s(?:from|by))"),
        ("work", True, r"(?:work|works|working|been\sworking|employed)\s(?:at|for|by)"),
        ("home", False, rf"(?:moved\s(?:away\s|out\s)?(?:from|of)|(?:{_NOT})\slives?\sin)"),
        ("home", True, r"(?:live|lives|living|reside|resides)\sin"),
        ("home", True, r"(?:moved|relocated)\s(?:back\s|here\s)?to")))
"""(slot, whether it holds, pattern): the first pattern that matches a clause decides."""

_FROM_TO = re.compile(rf"^{WHO}{ADVERBS}\s(?:moved|relocated)\sfrom\s(?P<old>.+?)\s(?:back\s)?to\s(?P<what>.+)$")
_IS = re.compile(r"^(?P<who>(?:(?:my|our|the)\s)?[\w'-]+(?:\s[\w'-]+){0,3}?)\s(?:is|are|am)\s"
                 r"(?P<no>not\s|no\slonger\s)?(?:an?\s|the\s)?(?P<what>.+)$", re.I)


class Claim(NamedTuple):
    """A subject, a statement about it (slot, terms), and whether the statement holds or no longer holds."""

    slot: str
    subject: str
    terms: frozenset[str]
    holds: bool

    def keys(self) -> list[tuple[str, ...]]:
        """Return the keys of which two claims must share one to be compared."""
        return [(self.slot, self.subject, term) for term in self.terms]

    def against(self, older: Claim) -> bool:
        """Return whether this claim and an older one about the same thing contradict each other."""
        common = len(self.terms & older.terms) / len(self.terms | older.terms)
        return self.holds != older.holds and common >= SAME


@cache
def stem(word: str) -> str:
    """Stem one English word.

    >>> stem("stories")
    'stori'
    """
    import Stemmer

    return str(Stemmer.Stemmer("english").stemWord(word))


def claims(text: str, speaker: str = "user") -> Iterator[Claim]:
    """Yield the claims of a text; "I" and "my" mean the speaker.

    >>> [(c.slot, c.subject, sorted(c.terms), c.holds) for c in claims("I don't like jazz anymore.", "Ann")]
    [('taste', 'ann', ['jazz'], False)]
    """
    for clause in clauses(text):
        yield from _clause_claims(clause, speaker)


def sentences(text: str) -> list[str]:
    """Split a text into sentences without contractions.

    >>> sentences("I'm here. It isn't far!")
    ['I am here.', 'It is not far!']
    """
    text = text.replace("\u2019", "'")
    for short, long in _EXPANDED:
        text = short.sub(long, text)
    return [sentence for part in _SENTENCE.split(text) if (sentence := part.strip())]


def clauses(text: str) -> Iterator[str]:
    """Yield the clauses of a text, without lead-in words and without questions.

    >>> list(clauses("Well, I like tea, but my dog is old. Do you like it?"))
    ['Well', 'I like tea', 'my dog is old.']
    """
    for sentence in sentences(text):
        if not sentence.rstrip(_STRIP.replace("?", "")).endswith("?"):
            yield from split_clauses(sentence)


def split_clauses(sentence: str) -> list[str]:
    """Split a sentence into its clauses, without lead-in words."""
    return [clause for part in _CLAUSE.split(sentence) if (clause := _strip_lead(part))]


def _strip_lead(clause: str) -> str:
    clause = clause.strip(" \"'(*")
    while (shorter := _LEAD.sub("", clause)) != clause:
        clause = shorter
    return clause


def subject_of(who: str, speaker: str) -> str | None:
    """Return the subject in lower case, or None for a pronoun.

    >>> subject_of("My friend Rachel", "user"), subject_of("I", "user"), subject_of("She", "user")
    ('rachel', 'user', None)
    """
    words = who.split()
    if words[0].lower() in _PRONOUNS:
        return None
    if who.lower() in ("i", "we", "the user"):
        return speaker.lower()
    named = [word for word in words[1:] if word[:1].isupper()]
    if words[0].lower() in ("my", "our"):
        return " ".join(named).lower() if named else f"{speaker.lower()}'s {' '.join(words[1:]).lower()}"
    return who.lower()


def terms_of(what: str, limit: int = 6) -> frozenset[str]:
    """Return the first words of an object, without stop words and adverbs, singular and in lower case.

    >>> sorted(terms_of("the old blue boats in summer"))
    ['blue', 'boat', 'old']
    """
    words = re.findall(r"(?<![\w'$:-])[\w'$:-]*\w", _TAIL.sub("", f"{what} ").lower())[:limit]
    return frozenset(w[:-1] if len(w) > 3 and w.endswith("s") and not w.endswith("ss") else w
                     for w in words if w not in STOP and not w.endswith("ly"))


def _clause_claims(clause: str, speaker: str) -> Iterator[Claim]:
    if match := _FROM_TO.match(clause):
        yield from _claim("home", match["who"], match["old"], False, speaker)
        yield from _claim("home", match["who"], match["what"], True, speaker)
        return
    for slot, holds, pattern in TEMPLATES:
        if match := pattern.match(clause):
            yield from _claim(slot, match["who"], match["what"], holds, speaker)
            return
    if match := _IS.match(clause):
        yield from _claim("is", match["who"], match["what"], match["no"] is None, speaker)


def _claim(slot: str, who: str, what: str, holds: bool, speaker: str) -> Iterator[Claim]:
    subject, terms = subject_of(who, speaker), terms_of(what)
    opening = next((word for word in re.findall(r"[a-z']+", what.lower()) if word in terms), "")
    passing = slot == "is" and opening.endswith("ing")  # "I'm not running" holds for a moment
    if subject and terms and not terms & _VAGUE and not passing:
        yield Claim(slot, subject, terms, holds)


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
_NONE = frozenset(re.findall(r"\S+", """ago already amazing am around back couple different far feeling few lately last
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
            about = terms_of(match["what"], 8) - _NONE
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
                     if word not in STOP and word not in _NONE and not _NUMBER.search(word))


def _units(money: str | None, number: str, rest: str) -> list[str]:
    """Return what a number may count: money, a duration, or up to three of the next words."""
    following = list(takewhile(lambda w: not _is_number(w), _WORD.findall(rest)))
    if ":" in number:
        return [] if following[:1] in (["am"], ["pm"], ["a"], ["p"]) else [":"]
    words = [w for w in following if w not in STOP and w not in _NONE]
    if money or words[:1] in (["dollar"], ["dollars"]):
        return ["$"]
    return [stem(w) for w in words[:3]]
