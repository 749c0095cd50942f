"""Perturbations of short answers: one number, month, day of the week or name is changed."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import NamedTuple

from memlab.text.normalise import COUNT_WORDS, NUMBER_WORDS, normalise_locomo, number_in_words
from memlab.text.temporal.calendar import MONTHS, WEEKDAYS

_LONGEST = 15  # words; a longer answer may stay right when one detail changes
_YEAR = range(1900, 2101)
_FACT = re.compile(
    rf"(?P<month>\b(?:{'|'.join(MONTHS)})\b)"
    rf"|(?P<day>\b(?:{'|'.join(WEEKDAYS)})\b)"
    r"|(?P<number>(?<![\w.:])\d{1,3}(?:,\d{3})+|(?<![\w.:])\d+)(?P<tail>\.\d+)?(?P<ordinal>(?:st|nd|rd|th)\b)?"
    rf"|(?P<words>\b(?:{COUNT_WORDS})\b)", re.IGNORECASE)
_NAME = re.compile(r"\b[A-Z][\w'&-]*(?:\s+(?:of\s+|the\s+)?[A-Z][\w'&-]*)*")
_NO_NAME = frozenset({*MONTHS, *WEEKDAYS, "I", "The", "A", "An", "You", "He", "She", "They", "We", "It", "In", "On",
                      "At", "My", "Your", "Yes", "No", "Likely", "Her", "His", "Their"})


class Perturbation(NamedTuple):
    """An answer with one changed fact, and the fact before and after."""

    text: str
    was: str
    now: str


def names(text: str, alone: bool = False) -> list[re.Match[str]]:
    """Return the names in an answer: capitalised words; a single first word counts only if ``alone`` is true.

    >>> [m[0] for m in names("Went to Rome with Aunt May Smith")]
    ['Rome', 'Aunt May Smith']
    >>> [m[0] for m in names("Sarah", alone=True)], names("Tomatoes")
    (['Sarah'], [])
    """
    matches = []
    for match in _NAME.finditer(text):
        words = match[0].split()
        first = match.start() == 0 and len(words) == 1 and not alone
        if not first and not all(word in _NO_NAME for word in words) and words[0] not in _NO_NAME:
            matches.append(match)
    return matches


def perturb(answer: str, draw: random.Random, others: Sequence[str] = (), alone: bool = False) -> Perturbation | None:
    """Change one fact of an answer; return None if it has none, or if the changed answer may still be right.

    Long answers and alternatives ("Ruby or PHP") may still be right. A count changes by at least two, since judges
    accept counts that are off by one. ``others`` are names that may replace a name; ``alone`` says that a capitalised
    first word is a name.

    >>> perturb("Paid $1,200", random.Random(1)).now, perturb("May", random.Random(1)).now
    ('1,388', 'March')
    """
    if len(answer.split()) > _LONGEST or " or " in answer:
        return None
    spots = [(m.start(), m.end(), "fact", m) for m in _FACT.finditer(answer)]
    fact_spans = [(start, end) for start, end, _, _ in spots]
    spots += [(m.start(), m.end(), "name", m) for m in names(answer, alone) if others
              and not any(start < m.end() and m.start() < end for start, end in fact_spans)]
    draw.shuffle(spots)
    for start, end, kind, match in spots:
        now = _other_fact(match, answer, draw) if kind == "fact" else _other_name(match[0], draw, others)
        if now is None:
            continue
        text = answer[:start] + now + answer[end:]
        if normalise_locomo(text) != normalise_locomo(answer):
            return Perturbation(text, answer[start:end], now)
    return None


def _other_fact(match: re.Match[str], answer: str, draw: random.Random) -> str | None:
    if match["month"]:
        return _match_case(match["month"], draw.choice([m for m in MONTHS if m.lower() != match["month"].lower()]))
    if match["day"]:
        return _match_case(match["day"], draw.choice([d for d in WEEKDAYS if d.lower() != match["day"].lower()]))
    if match["words"]:
        new = (NUMBER_WORDS[match["words"].lower()] + draw.randint(2, 5)) % 100
        return _match_case(match["words"], number_in_words(new))
    digits = match["number"]
    number = int(digits.replace(",", ""))
    has_month = re.compile("|".join(MONTHS), re.IGNORECASE).search(answer) is not None
    if has_month and number <= 31:  # the day of a month
        new = draw.choice([n for n in range(1, 29) if abs(n - number) > 1])
    elif number in _YEAR and len(digits) == 4:
        new = number - draw.randint(2, 5)
    else:
        new = number + draw.randint(max(2, number // 10), max(5, number // 3))
    if match["ordinal"]:
        return f"{new}{ordinal(new)}"
    width = len(digits) if digits[0] == "0" else 0
    return (f"{new:,}" if "," in digits else str(new).zfill(width)) + (match["tail"] or "")


def _other_name(name: str, draw: random.Random, others: Sequence[str]) -> str | None:
    mine = set(normalise_locomo(name).split())
    usable = [other for other in others if not mine & set(normalise_locomo(other).split())]
    return draw.choice(usable) if usable else None


def ordinal(number: int) -> str:
    """Return the ending of a number's ordinal.

    >>> [f"{n}{ordinal(n)}" for n in (1, 2, 3, 11, 22)]
    ['1st', '2nd', '3rd', '11th', '22nd']
    """
    return "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def _match_case(was: str, now: str) -> str:
    return now.capitalize() if was[0].isupper() else now.lower()
