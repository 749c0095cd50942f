"""Names by rules: speakers, and what is written with capitals where English would not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from memlab.write.extract_words import KIN, LOCATION, LOWER, NOT_NAMES, ORGANIZATION
from memlab.write.facts import Entity, Kind

SUMMARY = 200
"""Characters that a session says of a name, at most."""

_WORD = r"[A-Z\u00c0-\u00d6\u00d8-\u00de\u0391-\u03a9\u0410-\u042f][\w'&-]*"
_SPAN = re.compile(rf"(?<![\w'-]){_WORD}(?: (?:(?:of|the|de|la|van|von) )?{_WORD})*")

_AT = re.compile(r"\b(?:in|to|from|near|around|across|visit|visited|visiting|toward|towards)(?: the)? $")
_WORKS = re.compile(r"\bwork(?:s|ed|ing)? (?:at|for|with)(?: the)? $|\bjob at(?: the)? $")
_WITH = re.compile(rf"\b(?:[Mm]y|[Oo]ur|[Hh]is|[Hh]er) (?:\w+ )?(?:{'|'.join(sorted(KIN))}),? $|"
                   r"\b(?:named|called|[Hh]ey|[Hh]i|[Tt]hanks|[Dd]r\.|[Mm]rs?\.|[Mm]s\.|met|told|asked)[ ,]*$")
_SAYS = re.compile(r"^ (?:said|says|told|and I|is my|loves|likes|thinks|wants|asked|called|graduated|got married)\b")


def spans(sentence: str, known: frozenset[str] = frozenset()) -> Iterator[tuple[str, int, int]]:
    """Yield (name, start, end) of what is written with capitals, without the words that only begin a sentence.

    A word that begins a sentence belongs to a name only where it is ``known`` to be one, or what follows it is not.

    >>> [name for name, *_ in spans("Yesterday I met Emma at Golden Gate Park in May.")]
    ['Emma', 'Golden Gate Park']
    """
    for found in _SPAN.finditer(sentence):
        words, start = found[0].split(" "), found.start()
        opens = _opens(sentence, start)
        if opens and len(words) > 1 and _bare(" ".join(words[1:])) in known and _bare(found[0]) not in known:
            start += len(words.pop(0)) + 1
            opens = False
        while words and (words[0] in NOT_NAMES or words[0] in LOWER):
            start += len(words.pop(0)) + 1
            opens = False
        while words and (words[-1] in NOT_NAMES or words[-1] in LOWER):
            words.pop()
        name = _bare(" ".join(words))
        if len(name) > 1 and not (opens and len(words) == 1 and name not in known):
            yield name, start, start + len(name)


def _opens(sentence: str, start: int) -> bool:
    return not sentence[:start].strip("\"'( ")


def _bare(name: str) -> str:
    return re.sub(r"(?:'s|'|-)$", "", name)


def names(said: Sequence[tuple[str, str]], speakers: Iterable[str]) -> frozenset[str]:
    """Return what (who, sentence) pairs of a session show to be a name: the speakers, and capitals within sentences."""
    return frozenset(speakers) | frozenset(name for _, sentence in said for name, start, _ in spans(sentence)
                                           if not _opens(sentence, start))


def entities(said: Sequence[tuple[str, str]], speakers: Iterable[str], known: frozenset[str]) -> list[Entity]:
    """Return the names in (who, sentence) pairs of a session, speakers first, then as they come.

    Kind: speakers are people; else what most of its mentions look like ("at Emma's University", "my sister Emma",
    "in Rome"), an object where nothing tells. Summary: the first sentences that name it.
    """
    people = dict.fromkeys(speakers)
    votes: dict[str, Counter[Kind]] = {name: Counter({"person": 1_000}) for name in people}
    told: dict[str, list[str]] = {name: [] for name in people}
    for who, sentence in said:
        for name, start, end in spans(sentence, known):
            votes.setdefault(name, Counter())[_kind(name, sentence[:start], sentence[end:])] += 1
            lines = told.setdefault(name, [])
            line = f"{who}: {sentence}"
            if line not in lines and sum(map(len, lines)) < SUMMARY:
                lines.append(line)
    return [Entity(name, _most(votes[name]), " ".join(lines)[:SUMMARY]) for name, lines in told.items()]


def _kind(name: str, before: str, after: str) -> Kind:
    words = name.split(" ")
    if words[-1] in ORGANIZATION or _WORKS.search(before):
        return "organization"
    if words[-1] in LOCATION or words[0] in LOCATION:
        return "location"
    if _WITH.search(before) or _SAYS.search(after):
        return "person"
    return "location" if _AT.search(before) else "object"


def _most(votes: Counter[Kind]) -> Kind:
    told = sorted((-n, kind) for kind, n in votes.items() if kind != "object")
    return told[0][1] if told else "object"
