"""Normal forms in which answers are compared: LoCoMo's official one, words for matching, words for votes.

LoCoMo's form makes "3.5" and "35" equal, as the official score does. The words for matching keep decimal points and
turn number words into digits. The words for votes change as little as they can.
"""

from __future__ import annotations

import re
import string
import unicodedata

import Stemmer

from memlab.text.tokenize import characters

_UNITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
          "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def number_in_words(number: int) -> str:
    """Write a number from 0 to 99 in words.

    >>> number_in_words(7), number_in_words(40), number_in_words(42)
    ('seven', 'forty', 'forty-two')
    """
    if number < 20:
        return _UNITS[number]
    tens, unit = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_UNITS[unit]}" if unit else "")


NUMBER_WORDS = {number_in_words(n): n for n in sorted(range(100), key=lambda n: (-len(number_in_words(n)), n))}
"""Word -> number, longer words first: a pattern of alternatives must try "twenty-one" before "twenty"."""

COUNT_WORDS = "|".join(word for word, n in NUMBER_WORDS.items() if n > 1)
"""Alternatives of a regular expression. "zero" and "one" are left out: they are seldom counts."""

_PORTER = Stemmer.Stemmer("porter")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_LOCOMO_ARTICLES = re.compile(r"\b(?:a|an|the|and)\b")
_ARTICLES = ("a", "an", "the")
_TOKEN = re.compile(r"\d+(?:\.\d+)?|[^\W\d_]+(?:'[^\W\d_]+)?")
_VOTE_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|\w+")
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(NUMBER_WORDS)})\b")
_ACCEPTED = re.compile(r"(.{1,500}?)\.\s{1,9}(.{1,500}?)\s{0,9}(?:\([^)]{0,500}\))?\s{0,9}is also acceptable\.?",
                       re.DOTALL)
"""Bounded, since the time grows with the product of the bounds; the answers of LongMemEval are far shorter."""


def normalise_locomo(text: str) -> str:
    """Lower the case, drop ASCII punctuation (commas too) and the words a, an, the, and; single spaces.

    >>> normalise_locomo("The cat, and a Dog's $1,000.")
    'cat dogs 1000'
    """
    return " ".join(_LOCOMO_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def locomo_stems(text: str) -> list[str]:
    """Stem the words of LoCoMo's form (Porter, "An algorithm for suffix stripping", Program 14, 1980).

    PyStemmer's ``porter`` gives what the published algorithm gives for all 4,714 words of LoCoMo's dev slice. The
    official script stems with NLTK's extended variant, which conflates a few more ("trying" with "try"): with each
    evidence turn taken as the answer, 12 of 1,367 scores differ, the mean by .0004.

    >>> locomo_stems("Running, painted pottery and ponies")
    ['run', 'paint', 'potteri', 'poni']
    """
    return list(_PORTER.stemWords(normalise_locomo(text).split()))


def answer_tokens(text: str) -> tuple[str, ...]:
    """Return words and numbers for matching: no case, no articles, thousands joined, number words as digits.

    >>> answer_tokens("Twenty-one days, or $1,350.50")
    ('21', 'days', 'or', '1350.50')

    Without spaces each character is a word, so that an answer is found within a sentence.

    >>> answer_tokens("Tokyo 東京。")
    ('tokyo', '東', '京')
    """
    folded = unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")
    folded = re.sub(r"(?<=\d),(?=\d{3})", "", folded)
    folded = _NUMBER_WORD.sub(lambda match: str(NUMBER_WORDS[match[0]]), folded)
    return tuple(part for t in _TOKEN.findall(folded) if t not in _ARTICLES for part in characters(t))


def normalise_vote(answer: str) -> str:
    """Lower the case, drop punctuation, articles and commas within numbers.

    >>> normalise_vote("The 1,000 Cats."), normalise_vote("3.5 km"), normalise_vote("A")
    ('1000 cats', '3.5 km', 'a')
    """
    folded = answer.casefold()
    words = (word.replace(",", "") if word[0].isdigit() else word for word in _VOTE_TOKEN.findall(folded))
    return " ".join(word for word in words if word not in _ARTICLES) or folded.strip()


def accepted_answers(gold: str) -> list[str]:
    """Return the answers that a gold answer allows: LongMemEval writes an alternative behind the first.

    >>> accepted_answers("7 days. 8 days (including the last day) is also acceptable.")
    ['7 days', '8 days']
    >>> accepted_answers("Johnson")
    ['Johnson']
    """
    match = _ACCEPTED.fullmatch(gold.strip())
    return [match[1].strip(), match[2].strip()] if match else [gold.strip()]
