"""Claims of a text, by templates, and contradictions between claims.

MemoryStack publishes four templates: prefers / doesn't like; works at / left; lives in / moved from; is / is not. It
does not publish their wording; this one is ours. It is English, so texts in other languages have no claims.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memlab.write.relations.similarity import STOP

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
    words = re.findall(r"[\w'$:-]*\w", _TAIL.sub("", f"{what} ").lower())[:limit]
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
