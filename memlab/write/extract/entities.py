"""Names by rules: speakers, and capitalised words that are no ordinary words at the start of a sentence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from memlab.write.extract.base import Entity, Kind


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# small words within a name
LOWER = _words("of the de la van von")
# capitalised words that are no names
NOT_NAMES = _words("""I I'm I've I'd I'll Im Ive OK Ok Okay TV PS Oh Hi Hey Hello Wow Yeah Yes Yep No Nope Thanks
    Thank Well So And But Or The A An This That These Those It It's He She They We We're We've You You're Your My
    Our His Her Their What When Where Who Why How Also Then Just Btw BTW LOL Haha Congrats Good Great Nice Sure
    Please Let Let's Do Did Can Is Are Was Were If In On At For With From Dr Mr Mrs Ms AM PM Mon Tue Tues Wed Thu
    Thurs Fri Sat Sun January February March April May June July August September October November December Monday
    Tuesday Wednesday Thursday Friday Saturday Sunday Mondays Tuesdays Wednesdays Thursdays Fridays Saturdays
    Sundays""")
# last words of an organisation's name
ORGANIZATION = _words("""University College School Academy Inc Corp Corporation Company Co Ltd LLC Bank Hospital
    Clinic Institute Foundation Association Agency Department Club Church Studio Studios Airlines Group Team League
    Society""")
# first or last words of a place's name
LOCATION = _words("""Park Lake River Mountain Mountains Mount Beach Street Avenue Road City Island Islands Bay
    Canyon Valley Forest Falls County State States Country Village Town Square Bridge Coast Ocean Sea Desert Hotel
    Airport Museum Garden Gardens Cafe""")
# words that end the object of a verb
STOP = _words("""and but or because when while which that who where for with since so if as at on in to from by
    about after before how every lots last this yesterday today tomorrow next then too now here there it them him me
    you us is are was were will would can could""")
# objects without information: "I love the idea" names no taste
EMPTY = _words("idea ideas plan plans suggestion suggestions tip tips way lot thought fact best hear see sound look")
# first words of an object that are left out
OPENING = _words("a an the my our his her their some any this that these those to it you")
# family, friends and pets
KIN = _words("""friend sister brother mom mother dad father wife husband son daughter cousin aunt uncle boss
    colleague coworker roommate neighbor partner girlfriend boyfriend teacher coach niece nephew grandma grandmother
    grandpa grandfather dog cat puppy pup kitten""")
# possessions, unlike fun in "have fun"
THINGS = _words("""dog dogs cat cats puppy puppies kitten kittens turtle turtles horse horses rabbit rabbits fish
    bird birds bike bikes car cars house houses apartment apartments piano pianos guitar guitars violin violins""")

SUMMARY = 200
"""Most characters in the summary of a name."""

_NO_PART = NOT_NAMES | LOWER
_WORD = r"[A-Z\u00c0-\u00d6\u00d8-\u00de\u0391-\u03a9\u0410-\u042f][\w'&-]*"
_SPAN = re.compile(rf"(?<![\w'-]){_WORD}(?: (?:(?:of|the|de|la|van|von) )?{_WORD})*")

_AT = re.compile(r"\b(?:in|to|from|near|around|across|visit|visited|visiting|toward|towards)(?: the)? $")
_WORKS = re.compile(r"\bwork(?:s|ed|ing)? (?:at|for|with)(?: the)? $|\bjob at(?: the)? $")
_WITH = re.compile(rf"\b(?:[Mm]y|[Oo]ur|[Hh]is|[Hh]er) (?:\w+ )?(?:{'|'.join(sorted(KIN))}),? $|"
                   r"\b(?:named|called|[Hh]ey|[Hh]i|[Tt]hanks|[Dd]r\.|[Mm]rs?\.|[Mm]s\.|met|told|asked)[ ,]*$")
_SAYS = re.compile(r"^ (?:said|says|told|and I|is my|loves|likes|thinks|wants|asked|called|graduated|got married)\b")


def spans(sentence: str, names: frozenset[str] = frozenset()) -> Iterator[tuple[str, int, int]]:
    """Yield (name, start, end) of capitalised names in a sentence.

    The first word of a sentence belongs to a name only if it is one of ``names``, or the words after it are none.

    >>> [name for name, *_ in spans("Yesterday I met Emma at Golden Gate Park in May.")]
    ['Emma', 'Golden Gate Park']
    """
    for match in _SPAN.finditer(sentence):
        words, start = match[0].split(" "), match.start()
        opens = _opens(sentence, start)
        extra = opens and len(words) > 1 and _bare(" ".join(words[1:])) in names and _bare(match[0]) not in names
        while words and (extra or words[0] in _NO_PART):
            start += len(words.pop(0)) + 1
            opens = extra = False
        while words and words[-1] in _NO_PART:
            words.pop()
        name = _bare(" ".join(words))
        if len(name) > 1 and not (opens and len(words) == 1 and name not in names):
            yield name, start, start + len(name)


def _opens(sentence: str, start: int) -> bool:
    return not sentence[:start].strip("\"'( ")


def _bare(name: str) -> str:
    return re.sub(r"(?:'s|'|-)$", "", name)


def names(lines: Sequence[tuple[str, str]], speakers: Iterable[str]) -> frozenset[str]:
    """Return the names in the (speaker, sentence) pairs of a session: speakers, and capitals within sentences."""
    return frozenset(speakers) | frozenset(name for _, sentence in lines for name, start, _ in spans(sentence)
                                           if not _opens(sentence, start))


def entities(lines: Sequence[tuple[str, str]], speakers: Iterable[str], names: frozenset[str]) -> list[Entity]:
    """Return the names in (speaker, sentence) pairs of a session: speakers first, then in order of appearance.

    Kind: a person for speakers; else that of most mentions ("at Emma's University", "my sister Emma", "in Rome"), an
    object if none decides. Summary: the first sentences that mention the name.
    """
    votes: dict[str, Counter[Kind]] = {name: Counter({"person": 1_000}) for name in speakers}
    mentions: dict[str, list[str]] = {name: [] for name in votes}
    for who, sentence in lines:
        for name, start, end in spans(sentence, names):
            votes.setdefault(name, Counter())[_kind(name, sentence[:start], sentence[end:])] += 1
            summary, line = mentions.setdefault(name, []), f"{who}: {sentence}"
            if line not in summary and sum(map(len, summary)) < SUMMARY:
                summary.append(line)
    return [Entity(name, _majority(votes[name]), " ".join(summary)[:SUMMARY]) for name, summary in mentions.items()]


def _kind(name: str, before: str, after: str) -> Kind:
    words = name.split(" ")
    if words[-1] in ORGANIZATION or _WORKS.search(before):
        return "organization"
    if words[-1] in LOCATION or words[0] in LOCATION:
        return "location"
    if _WITH.search(before) or _SAYS.search(after):
        return "person"
    return "location" if _AT.search(before) else "object"


def _majority(votes: Counter[Kind]) -> Kind:
    ranked = sorted((-n, kind) for kind, n in votes.items() if kind != "object")
    return ranked[0][1] if ranked else "object"
