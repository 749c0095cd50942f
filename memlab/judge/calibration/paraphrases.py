"""Right answers in other words, by rules that cannot change what they say."""

from __future__ import annotations

import random
import re

from memlab.judge.calibration.corruptions import ordinal
from memlab.text.normalise import COUNT_WORDS, NUMBER_WORDS, accepted_answers, normalise_locomo, number_in_words
from memlab.text.temporal.calendar import MONTHS

_SENTENCES = ("From what you told me, the answer is: {}.", "As far as I remember, it is this: {}.",
              "Looking back at our conversations: {}.")
_DECLINES = ("You have not mentioned that, so I cannot answer.",
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


def polar(answer: str) -> bool:
    """Tell whether an answer begins with yes, no or how likely it is.

    >>> polar("Likely no"), polar("Sweden")
    (True, False)
    """
    return bool(_POLAR & set(normalise_locomo(answer).split()[:1]))


def items(answer: str) -> list[str]:
    """Split an answer that is a plain list of things; [] where it is none, or where that is doubtful.

    >>> items("Pottery, camping and a long swim"), items("Yes, since she collects books"), items("7 May, 2023")
    (['Pottery', 'camping', 'a long swim'], [], [])
    """
    if _TIME.search(answer) or any(mark in answer for mark in ".;:()") or polar(answer):
        return []
    parts = [part.strip() for part in re.split(r",\s+and\s+|,\s+|\s+and\s+", answer)]
    if len(parts) < 2 or any(not p or len(p.split()) > 4 or _CLAUSE & set(p.lower().split()) for p in parts):
        return []
    distinct = {normalise_locomo(part) for part in parts}
    return parts if len(distinct) == len(parts) and "" not in distinct else []


def listed(parts: list[str]) -> str:
    """Write things as a list.

    >>> listed(["tea"]), listed(["tea", "milk", "rum"])
    ('tea', 'tea, milk and rum')
    """
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def restated(answer: str, draw: random.Random) -> str:
    """Put an answer into a sentence."""
    return draw.choice(_SENTENCES).format(accepted_answers(answer)[0].rstrip("."))


def declined(draw: random.Random) -> str:
    """Decline to answer, as is right where the user never said what is asked."""
    return draw.choice(_DECLINES)


def renumbered(answer: str) -> str | None:
    """Write the first small number in words instead of digits, or the other way; null where there is none.

    >>> renumbered("4 hours"), renumbered("twenty-one days"), renumbered("$4"), renumbered("May 4, 2023")
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


def redated(answer: str) -> str | None:
    """Write the first date in another form; null where there is none.

    >>> redated("7 May 2023"), redated("May 7th, 2023"), redated("on June 3rd"), redated("in June 2023")
    ('May 7, 2023', '2023-05-07', 'on the 3rd of June', None)
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


def reordered(answer: str) -> str | None:
    """Give the things of a list in another order; null where the answer is no list.

    >>> reordered("tea, milk and rum"), reordered("tea")
    ('rum, milk and tea', None)
    """
    parts = items(answer)
    return listed(parts[::-1]) if parts else None
