"""Normal forms in which answers are compared: LoCoMo's official one, and words for matching and votes.

LoCoMo's form makes "3.5" and "35" equal, as the official score does. The words for matching keep decimal points and
turn number words into digits, and signs and symbols count.
"""

from __future__ import annotations

import re
import string
import unicodedata

import Stemmer

from memlab.support.text.tokenize import characters

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
ARTICLES = ("a", "an", "the")
_TOKEN = re.compile(
    r"(?:(?<![\w)%.,\u00b0$\u20ac\u00a3\u00a5])[-+])?\d+(?:\.\d+)?(?:/\d+)*(?:\+(?!\w))?"  # -5, 1/2, 50+
    r"|(?<!\w)[^\W\d_][-](?!\w)|[^\W\d_]+(?:'[^\W\d_]+)?(?:[+#]+)?|[^\w\s]")  # A-, C++, C#; a symbol
_MONEY_FIRST = re.compile(r"([$\u20ac\u00a3\u00a5])\s?(\d[\d.]*)")
_ALIKE = str.maketrans({"\u2019": "'", "\u2212": "-", "\u2044": "/"})
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


def answer_tokens(text: str, articles: bool = False) -> tuple[str, ...]:
    """Return words, numbers and symbols for matching: no case, thousands joined, number words as digits.

    A sign belongs to its number, + and # to their word, and a symbol of money follows its number. Punctuation is left
    out, and so are articles unless ``articles`` is true.

    >>> answer_tokens("Twenty-one days, or $1,350.50"), answer_tokens("The C++ of 50% at -5")
    (('21', 'days', 'or', '1350.50', '$'), ('c++', 'of', '50', '%', 'at', '-5'))

    Without spaces each character is a word, so that an answer is found within a sentence.

    >>> answer_tokens("Tokyo 東京。")
    ('tokyo', '東', '京')
    """
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_ALIKE)
    folded = re.sub(r"(?<=\d),(?=\d{3})", "", folded)
    folded = _NUMBER_WORD.sub(lambda match: str(NUMBER_WORDS[match[0]]), folded)
    tokens = _TOKEN.findall(_MONEY_FIRST.sub(r"\2 \1", re.sub(r"\bminus (?=\d)", "-", folded)))
    kept = (t for t in tokens if len(t) > 1 or t.isalnum() or is_unit(t) or unicodedata.category(t) == "Sm" or t == "@")
    return tuple(part for t in kept if articles or t not in ARTICLES for part in characters(t))


def is_unit(word: str) -> bool:
    """Return whether a token is a symbol of money, percent or degrees, or a picture such as an emoji.

    >>> [is_unit(word) for word in ("%", "$", "\u00b0", "+", "c++")]
    [True, True, True, False, False]
    """
    return word == "%" or unicodedata.category(word[0]) in ("Sc", "So")


def normalise_vote(answer: str) -> str:
    """Return the words of an answer for votes: those of ``answer_tokens``, or the answer itself if it has none.

    >>> normalise_vote("The 1,000 Cats."), normalise_vote("-3.5 km"), normalise_vote("A")
    ('1000 cats', '-3.5 km', 'a')
    """
    return " ".join(answer_tokens(answer)) or answer.casefold().strip()


def accepted_answers(gold: str) -> list[str]:
    """Return the answers that a gold answer allows: LongMemEval writes an alternative behind the first.

    >>> accepted_answers("7 days. 8 days (including the last day) is also acceptable.")
    ['7 days', '8 days']
    >>> accepted_answers("Johnson")
    ['Johnson']
    """
    match = _ACCEPTED.fullmatch(gold.strip())
    return [match[1].strip(), match[2].strip()] if match else [gold.strip()]
