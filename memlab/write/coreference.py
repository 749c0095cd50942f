"""Coreference by rules: "he", "she", "they", "I" and "you" are the last named person who fits.

Followed through a session's turns in order. A person is a given name that tells he from she (``coref_names``), a title
with a name ("Mr. Ray"), or kin and friends of somebody ("my sister", "Anna's boss", "my friend Anna"). "He" and "she"
are the last such person named at most ``reach`` turns before, or earlier in the turn; somebody else mentioned later ("a
girl", "someone", a name of which nothing is known) makes it nobody. Where two people talk, neither is "he" or "she" to
the other. "They" are a pair of names, or kin in the plural, in the same turn, unless something else in the plural comes
between. "I" is the speaker, "you" the other one of two who talk, where they have names. "He or she", and a word that
means several people in one turn, mean nobody.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memlab.text.temporal.calendar import MONTHS, WEEKDAYS
from memlab.write.coreference_lexicon import ANY_KIN, FEMALE, HE_KIN, MALE, SHE_KIN, THEY_KIN

FORMS = {"he": "he him his himself", "she": "she her hers herself", "they": "they them their theirs themselves",
         "I": "I me my mine myself", "you": "you your yours yourself"}
WORDS = {word: re.compile(rf"\b(?:{forms.replace(' ', '|').replace('|m', '|[Mm]')})\b", 0 if word == "I" else re.I)
         for word, forms in FORMS.items()}
"""The forms of each pronoun."""

_MEANS = {form: word for word in ("he", "she", "they") for form in FORMS[word].split()}
_KIN = {**dict.fromkeys(HE_KIN, "he"), **dict.fromkeys(SHE_KIN, "she"), **dict.fromkeys(ANY_KIN, ""),
        **dict.fromkeys(THEY_KIN, "they")}
_GENDER = {**dict.fromkeys(MALE, "he"), **dict.fromkeys(FEMALE, "she")}
_TITLES = {"Mr": "he", "Mrs": "she", "Ms": "she", "Miss": "she", "Dr": ""}
_OWNERS = ("my", "our", "your", "his", "her")

_UNNAMED = {"man": "he", "guy": "he", "boy": "he", "gentleman": "he", "woman": "she", "girl": "she", "lady": "she",
            "someone": "", "somebody": ""}
_NO_NAMES = frozenset((*MONTHS, *WEEKDAYS))
_WORD = re.compile(rf"\b(?:[A-Z][a-z]+|{'|'.join((*_MEANS, *_OWNERS, *_UNNAMED))})\b(?!-)")
_PERHAPS = re.compile(r"\b(?!(?:in|at|to|from|on|of|the|a|an|for|by)\b)[a-z]+,? $")
_WITHIN = re.compile(r"\b[a-z]+,? $")
_NAMELIKE = re.compile(r"'s\b| [A-Z][a-z]")
_KINSHIP = re.compile(rf" ({'|'.join(sorted(_KIN, key=len, reverse=True))})\b(?!'s)(?:,? ([A-Z][a-z]+)\b)?", re.I)
_FAMILY = re.compile(r"\.? ([A-Z][a-z]+)\b")
_SURNAME = re.compile(r" (?!(?:I|We|He|She|They|And|But|The)\b)[A-Z][a-z]+\b")
_PAIR = re.compile(r" and ([A-Z][a-z]+)\b(?!')")
_OWNS = re.compile(r"'s [a-z]")
_NOBODY = re.compile(r"(?:& |\bSt\.? |\bSan |\bSanta |\bTrader )$")
_EITHER = re.compile(r"\b(?:s?he or s?he|his or hers?|hers? or his|him or her|her or him)\b|s?/s?he\b", re.I)
_THINGS = re.compile(r"\b(?:the|some|these|those|many|few|several|two|three|four|all|other|more|\d+) (?:[a-z]+ )?"
                     r"[a-z]{2,}[^s\W]s\b", re.I)


@dataclass(frozen=True)
class _Person:
    name: str  # "" for somebody who has none: stands in the way of whoever was named before
    word: str  # he, she, they, or "" where nothing tells
    turn: int
    end: int


def resolve_pronouns(turns: Sequence[tuple[str | None, str]], reach: int = 3) -> list[dict[str, str]]:
    """Return, for each turn (speaker or None, text) of a session, whom its pronouns mean: he, she, they, I, you.

    >>> talk = [("Ann", "My sister Julia came over."), ("Bob", "Nice! How is she?"), ("Ann", "I saw Tom. He is well.")]
    >>> for said in resolve_pronouns(talk): print(said)
    {'I': 'Ann', 'you': 'Bob'}
    {'I': 'Bob', 'you': 'Ann', 'she': 'Julia'}
    {'I': 'Ann', 'you': 'Bob', 'he': 'Tom'}
    """
    names = list(dict.fromkeys(speaker for speaker, _ in turns if speaker))
    singular = [bool(WORDS["he"].search(text) or WORDS["she"].search(text)) for _, text in turns]
    people: list[_Person] = []
    out = []
    for at, (speaker, text) in enumerate(turns):
        told: dict[str, str] = {}
        if speaker:
            told["I"] = speaker
            if len(names) == 2:
                told["you"] = names[1 - names.index(speaker)]
        if any(singular[at : at + 1 + reach]) or WORDS["they"].search(text):  # else nobody asks whom this turn names
            turn = _Turn(people, names, speaker, text.replace("\u2019", "'"), at, reach)
            people = turn.people[-8:]
            told |= turn.meant()
        out.append(told)
    return out


class _Turn:
    """One turn, read from left to right."""

    def __init__(self, people: list[_Person], names: list[str], speaker: str | None, text: str, at: int,
                 reach: int) -> None:
        self.people = list(people)
        self._names, self._speaker, self._text, self._at, self._reach = names, speaker, text, at, reach
        self._whom: dict[str, set[str]] = {}
        either = [m.span() for m in _EITHER.finditer(text)]
        done = 0
        for match in _WORD.finditer(text):
            if match.start() >= done and not any(a <= match.start() < b for a, b in either):
                done = self._read(match)

    def meant(self) -> dict[str, str]:
        """Return the pronouns that mean one and the same person throughout the turn."""
        return {word: whom for word, (whom, *more) in self._whom.items() if whom and not more}

    def _read(self, match: re.Match[str]) -> int:
        """Take in a word that may name somebody, or a pronoun; return up to where the text is read."""
        word, low, text = match[0], match[0].lower(), self._text
        if low in _OWNERS and (kin := _KINSHIP.match(text, match.end())):
            return self._add_kin(low, kin)
        if low in _MEANS:
            self._whom.setdefault(_MEANS[low], set()).add(self._last(_MEANS[low], match.start()) or "")
            return match.end()
        if word in _TITLES and (family := _FAMILY.match(text, match.end())):
            dot = "" if word == "Miss" else "."
            return self._add(f"{word}{dot} {family[1]}", _TITLES[word], family.end())
        if low in _UNNAMED:
            return self._add("", _UNNAMED[low], match.end())
        if word not in _GENDER:  # in the midst of a sentence a capital may be a name of which nothing is known
            within = _WITHIN if _NAMELIKE.match(text, match.end()) else _PERHAPS
            some = word not in _NO_NAMES and low not in _OWNERS and within.search(text, max(0, match.start() - 20),
                                                                                  match.start())
            return self._add("", "", match.end()) if some else match.end()
        if _NOBODY.search(text, max(0, match.start() - 8), match.start()):
            return match.end()
        return self._add_named(word, match)

    def _add_named(self, word: str, match: re.Match[str]) -> int:
        text, end = self._text, match.end()
        if text.startswith("'s", end):
            kin = _KINSHIP.match(text, end + 2)
            if kin:
                return self._add_kin(word, kin)
            if not _OWNS.match(text, end):  # "Trader Joe's."
                return end
        pair = _PAIR.match(text, end)
        if pair and pair[1] in _GENDER:
            for one in (word, pair[1]):
                self._add("" if self._talks(one) else one, _GENDER[one], pair.end())
            return self._add(f"{word} and {pair[1]}", "they", pair.end())
        if self._talks(word):
            return end
        surname = _SURNAME.match(text, end)
        return self._add(word + (surname[0] if surname else ""), _GENDER[word], surname.end() if surname else end)

    def _add_kin(self, owner: str, kin: re.Match[str]) -> int:
        word, called = kin[1].lower(), kin[2] if kin[2] and (kin[2] in _GENDER) else None
        other = self._names[1 - self._names.index(self._speaker)] if self._speaker and len(self._names) == 2 else None
        if owner in ("my", "our"):
            name = f"{self._speaker}'s {word}" if self._speaker else word  # "my" is nobody's, once said by another
        elif owner == "your":
            name = f"{other}'s {word}" if other else ""
        else:
            name = "" if owner in ("his", "her") else f"{owner}'s {word}"
        return self._add(called or name, _KIN[word] or _GENDER.get(called or "", ""), kin.end(2 if called else 1))

    def _add(self, name: str, word: str, end: int) -> int:
        self.people.append(_Person(name, word, self._at, end))
        return end

    def _talks(self, name: str) -> bool:
        """Return whether somebody is one of two who talk, whom neither calls "he" or "she"."""
        return len(self._names) <= 2 and name in self._names

    def _last(self, word: str, start: int) -> str | None:
        """Return the last person who fits; "" or None where there is none, or it is not known who."""
        for person in reversed(self.people):
            if self._at - person.turn > (0 if word == "they" else self._reach):
                return None
            if person.word == word == "they" and _THINGS.search(self._text, person.end, start):
                return None
            if person.word == word:
                return person.name
            if not person.word and word != "they":
                return None
        return None
