"""Answers in other words, with another fact, or outdated: pairs whose verdict is known."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from memlab.pipeline.tables import Tables, with_text
from memlab.support.text import normalise
from memlab.support.text.temporal.calendar import MONTHS, WEEKDAYS

_LONGEST = 15  # words; a longer answer may stay right when one detail changes
_YEAR = range(1900, 2101)
_FACT = re.compile(
    rf"(?P<month>\b(?:{'|'.join(MONTHS)})\b)"
    rf"|(?P<day>\b(?:{'|'.join(WEEKDAYS)})\b)"
    r"|(?P<number>(?<![\w.:])\d{1,3}(?:,\d{3})+|(?<![\w.:])\d+)(?P<tail>\.\d+)?(?P<ordinal>(?:st|nd|rd|th)\b)?"
    rf"|(?P<words>\b(?:{normalise.COUNT_WORDS})\b)", re.IGNORECASE)
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
        if normalise.normalise_locomo(text) != normalise.normalise_locomo(answer):
            return Perturbation(text, answer[start:end], now)
    return None


def _other_fact(match: re.Match[str], answer: str, draw: random.Random) -> str | None:
    for kind, known in (("month", MONTHS), ("day", WEEKDAYS)):
        if was := match[kind]:
            return _match_case(was, draw.choice([name for name in known if name.lower() != was.lower()]))
    if match["words"]:
        new = (normalise.NUMBER_WORDS[match["words"].lower()] + draw.randint(2, 5)) % 100
        return _match_case(match["words"], normalise.number_in_words(new))
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
    mine = set(normalise.normalise_locomo(name).split())
    usable = [other for other in others if not mine & set(normalise.normalise_locomo(other).split())]
    return draw.choice(usable) if usable else None


def ordinal(number: int) -> str:
    """Return the ending of a number's ordinal.

    >>> [f"{n}{ordinal(n)}" for n in (1, 2, 3, 11, 22)]
    ['1st', '2nd', '3rd', '11th', '22nd']
    """
    return "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def _match_case(was: str, now: str) -> str:
    return now.capitalize() if was[0].isupper() else now.lower()


SENTENCES = ("From what you told me, the answer is: {}.", "As far as I remember, it is this: {}.",
             "Looking back at our conversations: {}.")
DECLINES = ("You have not mentioned that, so I cannot answer.",
            "There is no information about that in what you have told me.",
            "I cannot say: what you asked about does not come up in our conversations.")
_CLAUSE = frozenset((
    "is", "are", "was", "were", "have", "has", "had", "did", "do", "does", "will", "would", "can", "could", "should",
    "she", "he", "they", "i", "you", "we", "it", "because", "since", "that", "which", "who", "when", "where",
    "while", "if", "or", "but", "not", "by", "to", "of", "for", "from", "with", "about"))
_POLAR = frozenset(("yes", "no", "likely", "unlikely", "probably", "maybe", "perhaps", "somewhat", "possibly"))
_MONTH = "|".join(MONTHS)
_DATE = re.compile(
    rf"\b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<month>{_MONTH})"
    rf"|(?P<month2>{_MONTH})\s+(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?)\b(?:,?\s+(?P<year>\d{{4}})\b)?(?!\d)")
_TIME = re.compile(rf"{_MONTH}|\b\d{{4}}\b")
_DIGITS = re.compile(r"(?<![\w$€£.,:/+-])\d{1,2}(?![\w%.,:/+-]|\.\d)")
_COUNT = re.compile(rf"\b(?:{normalise.COUNT_WORDS})\b", re.IGNORECASE)


def is_polar(answer: str) -> bool:
    """Return whether an answer begins with yes, no or a word of likelihood.

    >>> is_polar("Likely no"), is_polar("Sweden")
    (True, False)
    """
    return bool(_POLAR & set(normalise.normalise_locomo(answer).split()[:1]))


def list_items(answer: str) -> list[str]:
    """Return the items of an answer that is a plain list; [] if it is not one, or may not be one.

    >>> list_items("Pottery, camping and a long swim")
    ['Pottery', 'camping', 'a long swim']
    >>> list_items("Yes, since she collects books"), list_items("7 May, 2023")
    ([], [])
    """
    if _TIME.search(answer) or any(mark in answer for mark in ".;:()") or is_polar(answer):
        return []
    parts = [part.strip() for part in re.split(r",\s+and\s+|,\s+|(?<!\s)\s+and\s+", answer)]
    if len(parts) < 2 or any(not p or len(p.split()) > 4 or _CLAUSE & set(p.lower().split()) for p in parts):
        return []
    distinct = {normalise.normalise_locomo(part) for part in parts}
    return parts if len(distinct) == len(parts) and "" not in distinct else []


def join_list(parts: list[str]) -> str:
    """Join the items of a list into one text.

    >>> join_list(["tea"]), join_list(["tea", "milk", "rum"])
    ('tea', 'tea, milk and rum')
    """
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def renumber(answer: str) -> str | None:
    """Write the first small number in words instead of digits, or in digits instead of words; None without one.

    >>> renumber("4 hours"), renumber("twenty-one days"), renumber("$4"), renumber("May 4, 2023")
    ('four hours', '21 days', None, None)
    """
    answer = normalise.accepted_answers(answer)[0]
    if any(month in answer for month in MONTHS):
        return None
    if match := _DIGITS.search(answer):
        return answer[:match.start()] + normalise.number_in_words(int(match[0])) + answer[match.end():]
    if match := _COUNT.search(answer):
        return answer[:match.start()] + str(normalise.NUMBER_WORDS[match[0].lower()]) + answer[match.end():]
    return None


def reformat_date(answer: str) -> str | None:
    """Write the first date in another format; None if there is no date.

    >>> reformat_date("7 May 2023"), reformat_date("May 7th, 2023")
    ('May 7, 2023', '2023-05-07')
    >>> reformat_date("on June 3rd"), reformat_date("in June 2023")
    ('on the 3rd of June', None)
    """
    answer = normalise.accepted_answers(answer)[0]
    match = _DATE.search(answer)
    if match is None:
        return None
    day, month = int(match["day"] or match["day2"]), match["month"] or match["month2"]
    if not 1 <= day <= 31:
        return None
    if match["year"] is None:
        new = f"{month} {day}" if match["day"] else f"the {day}{ordinal(day)} of {month}"
    elif match["day"]:
        new = f"{month} {day}, {match['year']}"
    else:
        new = f"{match['year']}-{MONTHS.index(month) + 1:02d}-{day:02d}"
    return answer[:match.start()] + new + answer[match.end():]


def reorder(answer: str) -> str | None:
    """Reverse the items of a list; None if the answer is not a list.

    >>> reorder("tea, milk and rum"), reorder("tea")
    ('rum, milk and tea', None)
    """
    parts = list_items(answer)
    return join_list(parts[::-1]) if parts else None


_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_DOLLARS = re.compile(r"\$(\d[\d,]*\d|\d)")
_REACH = 3  # the unit of a number is one of this many words after it
_STOP = frozenset(normalise.locomo_stems(
    "of do does did have has i my me in on for with now so far total currently how many much"))


def outdated_values(tables: Tables) -> dict[int, str]:
    """Return the earlier value for each question that has exactly one candidate.

    Only counts and amounts are considered. A candidate is a number in the evidence turns of an earlier session. It has
    the unit of the gold answer (the word after its number, the word after "How many" in the question, or the sign $),
    differs from the gold answer and does not occur in the latest session. Needs questions, gold, evidence, turns and
    texts.
    """
    wanted = tables["gold"].filter((pl.col("category") == "knowledge-update") & ~pl.col("abstain"))
    turns = (
        tables["evidence"].filter(pl.col("question").is_in(wanted["question"].implode()))
        .join(tables["questions"].select("question", "corpus"), on="question")
        .join(with_text(tables["turns"], tables["texts"]), on=["corpus", "session", "turn"])
        .sort("question", "session", "turn")
    )
    texts = dict(with_text(tables["questions"], tables["texts"]).select("question", "text").iter_rows())
    values = {}
    for question, answer in wanted.select("question", "answer").sort("question").iter_rows():
        evidence = turns.filter(pl.col("question") == question)
        if answer is None or evidence["session"].n_unique() < 2:
            continue
        latest = evidence["session"].max()
        old = evidence.filter(pl.col("session") < latest)["text"].to_list()
        new = evidence.filter(pl.col("session") == latest)["text"].to_list()
        value = _earlier_value(texts[question], answer, old, new)
        if value is not None:
            values[question] = value
    return values


def _earlier_value(question: str, answer: str, old: list[str], new: list[str]) -> str | None:
    numbers = [word for word in normalise.answer_tokens(answer) if _NUMBER.fullmatch(word)]
    if len(numbers) != 1:
        return None
    if "$" in answer:
        values = _dollars(old) - set(numbers) - _dollars(new)
        return f"${int(values.pop()):,}" if len(values) == 1 else None
    units = _units(answer) or _units(question.partition("ow many")[2][:60])
    values = _numbers_with_unit(old, units) - set(numbers) - _numbers_with_unit(new, units)
    if len(values) != 1:
        return None
    rest = " ".join(word for word in answer.split() if not any(n in normalise.answer_tokens(word) for n in numbers))
    return f"{values.pop()} {rest}".strip()


def _dollars(texts: list[str]) -> set[str]:
    return {amount.replace(",", "") for text in texts for amount in _DOLLARS.findall(text)}


def _units(text: str) -> set[str]:
    """Return the first two words that can name a unit."""
    words = [w for w in normalise.locomo_stems(text) if not w.isdigit() and w not in _STOP
             and normalise.answer_tokens(w) and not normalise.answer_tokens(w)[0].isdigit()]
    return set(words[:2])


def _numbers_with_unit(texts: list[str], units: set[str]) -> set[str]:
    """Return the numbers that one of the units follows closely."""
    numbers = set()
    for text in texts:
        words = normalise.answer_tokens(text)
        for at, word in enumerate(words):
            if _NUMBER.fullmatch(word) and units & set(normalise.locomo_stems(" ".join(words[at + 1:at + 1 + _REACH]))):
                numbers.add(word)
    return numbers
