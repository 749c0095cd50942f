"""Rules that put an answer into other words without changing its meaning."""

from __future__ import annotations

import re

from memlab.judge.calibration.corruptions import ordinal
from memlab.text.normalise import COUNT_WORDS, NUMBER_WORDS, accepted_answers, normalise_locomo, number_in_words
from memlab.text.temporal.calendar import MONTHS

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
_COUNT = re.compile(rf"\b(?:{COUNT_WORDS})\b", re.IGNORECASE)


def is_polar(answer: str) -> bool:
    """Return whether an answer begins with yes, no or a word of likelihood.

    >>> is_polar("Likely no"), is_polar("Sweden")
    (True, False)
    """
    return bool(_POLAR & set(normalise_locomo(answer).split()[:1]))


def list_items(answer: str) -> list[str]:
    """Return the items of an answer that is a plain list; [] if it is not one, or may not be one.

    >>> list_items("Pottery, camping and a long swim")
    ['Pottery', 'camping', 'a long swim']
    >>> list_items("Yes, since she collects books"), list_items("7 May, 2023")
    ([], [])
    """
    if _TIME.search(answer) or any(mark in answer for mark in ".;:()") or is_polar(answer):
        return []
    parts = [part.strip() for part in re.split(r",\s+and\s+|,\s+|\s+and\s+", answer)]
    if len(parts) < 2 or any(not p or len(p.split()) > 4 or _CLAUSE & set(p.lower().split()) for p in parts):
        return []
    distinct = {normalise_locomo(part) for part in parts}
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
    answer = accepted_answers(answer)[0]
    if any(month in answer for month in MONTHS):
        return None
    if match := _DIGITS.search(answer):
        return answer[:match.start()] + number_in_words(int(match[0])) + answer[match.end():]
    if match := _COUNT.search(answer):
        return answer[:match.start()] + str(NUMBER_WORDS[match[0].lower()]) + answer[match.end():]
    return None


def reformat_date(answer: str) -> str | None:
    """Write the first date in another format; None if there is no date.

    >>> reformat_date("7 May 2023"), reformat_date("May 7th, 2023")
    ('May 7, 2023', '2023-05-07')
    >>> reformat_date("on June 3rd"), reformat_date("in June 2023")
    ('on the 3rd of June', None)
    """
    answer = accepted_answers(answer)[0]
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
