"""OltraMem: dates and pronouns resolved as a turn is written; turns vote for sessions, which are shown whole.

It reports a retrieval hit of 98 % and 70.4 % of LongMemEval's answers, and 81.2 % of LoCoMo's on 500 sampled questions.
``conf/system/oltramem.yaml``:

* write: ``chunk``: turn. ``anchor``: rules_coref, the persons of pronouns (below, by the names in ``names.yaml``),
  then relative dates as ISO dates (``write.anchor``).
* search: ``dense``: hnsw, ``lexical``: bm25, over turns.
* rank: ``score``: weighted. ``rollup``: dcg_sum. ``select``: fixed_3. How many sessions it shows is not published.
* read: ``measure``: session, whole sessions. ``prompt``: oltramem, one plain prompt.

**Score** of turn t, from its cosine and BM25, each min-max normalised over the turns that the question finds::

    s(t) = .7 cosine(t) + .3 BM25(t)

**Roll-up** of session S, over its turns among the first 10, r(t) being the rank of t by s, from 1::

    score(S) = sum of 1 / log2(r(t) + 1)

**Pronouns.** "He", "she" and "they" are the last named person who fits, "I" the speaker, "you" the other of two. The
turn keeps its words; a note is appended: ``[she = Julia; you = Bob]``.

There is no corrected form. The experiments that its write-up calls failed are arms of +exp=failed_experiments.

**Coreference by rules.** The turns of a session are read in order. A person is a given name with a known gender
(``names.yaml``), a title with a name ("Mr. Ray"), or kin and friends of somebody ("my sister", "Anna's boss", "my
friend Anna"). "He" and "she" are the last such person named at most ``reach`` turns before, or earlier in the turn, but
not if somebody else follows ("a girl", "someone", an unknown name). If two people talk, neither calls the other "he" or
"she". "They" are a pair of names, or kin in the plural, in the same turn, but not if another plural follows. "I" is the
speaker, "you" the other one of two speakers, if they have names. "He or she", and a pronoun that means several people
in one turn, are not resolved.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field

from memlab.pipeline.stage import stage
from memlab.pipeline.tables import SESSION, Tables, with_text
from memlab.stages.write.anchor import Into, ResolveDates, append_notes, note, split_notes
from memlab.store import Store
from memlab.support.foreign import read_yaml
from memlab.support.text.temporal.calendar import MONTHS, WEEKDAYS

_NAMES = read_yaml(Path(__file__).with_name("names.yaml"))
_GENDER = {name: pronoun for pronoun, names in _NAMES["given"].items() for name in names.split()}
_KIN = {word: pronoun for pronoun, words in _NAMES["kin"].items() for word in words}
"""Names, and words for kin -> the pronoun, "" if it is unknown."""

FORMS = {"he": "he him his himself", "she": "she her hers herself", "they": "they them their theirs themselves",
         "I": "I me my mine myself", "you": "you your yours yourself"}
WORDS = {word: re.compile(rf"\b(?:{forms.replace(' ', '|').replace('|m', '|[Mm]')})\b", 0 if word == "I" else re.I)
         for word, forms in FORMS.items()}
"""A pattern of the forms of each pronoun."""

_PRONOUN = {form: word for word in ("he", "she", "they") for form in FORMS[word].split()}
_TITLES = {"Mr": "he", "Mrs": "she", "Ms": "she", "Miss": "she", "Dr": ""}
_OWNERS = ("my", "our", "your", "his", "her")

_UNNAMED = {"man": "he", "guy": "he", "boy": "he", "gentleman": "he", "woman": "she", "girl": "she", "lady": "she",
            "someone": "", "somebody": ""}
_NO_NAMES = frozenset((*MONTHS, *WEEKDAYS))
_WORD = re.compile(rf"\b(?:[A-Z][a-z]+|{'|'.join((*_PRONOUN, *_OWNERS, *_UNNAMED))})\b(?!-)")
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
    name: str  # "" for somebody without a name; pronouns then mean nobody named before
    pronoun: str  # he, she, they, or "" if unknown
    turn: int
    end: int


def resolve_pronouns(turns: Sequence[tuple[str | None, str]], reach: int = 3) -> list[dict[str, str]]:
    """Return the persons that he, she, they, I, you mean in each turn (speaker or None, text) of a session.

    >>> talk = [("Ann", "My sister Julia came over."), ("Bob", "Nice! How is she?"), ("Ann", "I saw Tom. He is well.")]
    >>> for persons in resolve_pronouns(talk): print(persons)
    {'I': 'Ann', 'you': 'Bob'}
    {'I': 'Bob', 'you': 'Ann', 'she': 'Julia'}
    {'I': 'Ann', 'you': 'Bob', 'he': 'Tom'}
    """
    names = list(dict.fromkeys(speaker for speaker, _ in turns if speaker))
    singular = [bool(WORDS["he"].search(text) or WORDS["she"].search(text)) for _, text in turns]
    people: list[_Person] = []
    resolved = []
    for at, (speaker, text) in enumerate(turns):
        persons: dict[str, str] = {}
        if speaker:
            persons["I"] = speaker
            if len(names) == 2:
                persons["you"] = names[1 - names.index(speaker)]
        if any(singular[at : at + 1 + reach]) or WORDS["they"].search(text):  # else no pronoun refers to this turn
            turn = _Turn(people, names, speaker, text.replace("\u2019", "'"), at, reach)
            people = turn.people[-8:]
            persons |= turn.persons()
        resolved.append(persons)
    return resolved


class _Turn:
    """One turn, read from left to right."""

    def __init__(self, people: list[_Person], names: list[str], speaker: str | None, text: str, at: int,
                 reach: int) -> None:
        self.people = list(people)
        self._names, self._speaker, self._text, self._at, self._reach = names, speaker, text, at, reach
        self._referents: dict[str, set[str]] = {}
        either = [m.span() for m in _EITHER.finditer(text)]
        position = 0
        for match in _WORD.finditer(text):
            if match.start() >= position and not any(a <= match.start() < b for a, b in either):
                position = self._read(match)

    def persons(self) -> dict[str, str]:
        """Return the pronouns that mean one person throughout the turn, with that person."""
        return {pronoun: name for pronoun, (name, *more) in self._referents.items() if name and not more}

    def _read(self, match: re.Match[str]) -> int:
        """Read a word that may be a name or a pronoun; return the position to read on from."""
        word, low, text = match[0], match[0].lower(), self._text
        if low in _OWNERS and (kin := _KINSHIP.match(text, match.end())):
            return self._add_kin(low, kin)
        if low in _PRONOUN:
            pronoun = _PRONOUN[low]
            self._referents.setdefault(pronoun, set()).add(self._last(pronoun, match.start()) or "")
            return match.end()
        if word in _TITLES and (family := _FAMILY.match(text, match.end())):
            dot = "" if word == "Miss" else "."
            return self._add(f"{word}{dot} {family[1]}", _TITLES[word], family.end())
        if low in _UNNAMED:
            return self._add("", _UNNAMED[low], match.end())
        if word not in _GENDER:  # within a sentence a capital may be an unknown name
            before = _WITHIN if _NAMELIKE.match(text, match.end()) else _PERHAPS
            is_name = word not in _NO_NAMES and low not in _OWNERS and before.search(
                text, max(0, match.start() - 20), match.start())
            return self._add("", "", match.end()) if is_name else match.end()
        if _NOBODY.search(text, max(0, match.start() - 8), match.start()):
            return match.end()
        return self._add_named(word, match)

    def _add_named(self, word: str, match: re.Match[str]) -> int:
        text, end = self._text, match.end()
        if text.startswith("'s", end):
            if kin := _KINSHIP.match(text, end + 2):
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
        word, given_name = kin[1].lower(), kin[2] if kin[2] in _GENDER else ""
        other = self._names[1 - self._names.index(self._speaker)] if self._speaker and len(self._names) == 2 else None
        if owner in ("my", "our"):
            name = f"{self._speaker}'s {word}" if self._speaker else word  # "my" would be wrong for another speaker
        elif owner == "your":
            name = f"{other}'s {word}" if other else ""
        else:
            name = "" if owner in ("his", "her") else f"{owner}'s {word}"
        pronoun = _KIN[word] or _GENDER.get(given_name, "")
        return self._add(given_name or name, pronoun, kin.end(2 if given_name else 1))

    def _add(self, name: str, pronoun: str, end: int) -> int:
        self.people.append(_Person(name, pronoun, self._at, end))
        return end

    def _talks(self, name: str) -> bool:
        """Return whether somebody is one of at most two speakers, who never call each other "he" or "she"."""
        return len(self._names) <= 2 and name in self._names

    def _last(self, pronoun: str, start: int) -> str | None:
        """Return the last person who fits; "" or None if nobody fits, or if it is uncertain."""
        for person in reversed(self.people):
            if self._at - person.turn > (0 if pronoun == "they" else self._reach):
                return None
            if person.pronoun == pronoun:
                things = pronoun == "they" and _THINGS.search(self._text, person.end, start)
                return None if things else person.name
            if not person.pronoun and pronoun != "they":
                return None
        return None


@stage
class ResolvePronouns:
    """Append the persons that pronouns mean, by ``memlab.stages.systems.oltramem``: ``[she = Julia; you = Bob]``.

    A memory gets the pronouns of its turns that are in its text and mean a single person whom the text does not name.
    """

    reads: ClassVar = ("texts", "turns", "memories")
    writes: ClassVar = ("memories", "texts")
    into: Into = "key_and_value"  # values are shown only with rank.score.level=memory
    reach: Annotated[int, Field(ge=0)] = 3  # turns after which a person is forgotten; later, another is often meant
    speakers: bool = True  # resolve "I" and "you" too, where speakers have names

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return the memories with their pronouns resolved."""
        memories, texts = tables["memories"], tables["texts"]
        persons = self._persons(tables)
        for column in ("key_id", "value_id") if self.into == "key_and_value" else ("key_id",):
            rows = with_text(memories, texts, column).select("text", *SESSION, "turns")
            notes = [_pronoun_note(split_notes(text)[0], [persons.get((corpus, session, turn), {}) for turn in turns])
                     for text, corpus, session, turns in rows.iter_rows()]
            memories, texts = append_notes(memories, texts, column, pl.Series(notes, dtype=pl.String))
        return Tables(memories=memories, texts=texts)

    def _persons(self, tables: Tables) -> dict[tuple[int, int, int], dict[str, str]]:
        """Return the persons that the pronouns of each turn mean; each distinct session is read once."""
        sessions = with_text(tables["turns"], tables["texts"]).sort(*SESSION, "turn").group_by(
            SESSION, maintain_order=True).agg("turn", "speaker", "text")
        resolve = cache(lambda turns: resolve_pronouns(turns, self.reach))
        persons_of = {}
        for corpus, session, turns, speakers, texts in sessions.iter_rows():
            for turn, persons in zip(turns, resolve(tuple(zip(speakers, texts)))):
                persons_of[corpus, session, turn] = persons if self.speakers else {
                    pronoun: name for pronoun, name in persons.items() if pronoun not in ("I", "you")}
        return persons_of


def _pronoun_note(text: str, turns: Sequence[dict[str, str]]) -> str | None:
    """Return the note on the pronouns in a text, if the turns agree and the text does not name the person."""
    names: dict[str, set[str]] = {}
    for persons in turns:
        for pronoun, name in persons.items():
            names.setdefault(pronoun, set()).add(name)
    agreed = {pronoun: several.pop() for pronoun, several in names.items() if len(several) == 1}
    return note((pronoun, name) for pronoun, name in agreed.items()
                if WORDS[pronoun].search(text) and not re.search(rf"\b{re.escape(name)}\b", text))


@stage
class ResolveBoth:
    """Append the persons of pronouns, then dates: the write side of OltraMem."""

    reads: ClassVar = ("texts", "turns", "memories")
    writes: ClassVar = ("memories", "texts")
    coref: ResolvePronouns = Field(default_factory=ResolvePronouns)
    dates: ResolveDates = Field(default_factory=ResolveDates)

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the memories with pronouns and dates resolved."""
        return self.dates.run(tables.updated(self.coref.run(tables, store)), store)
