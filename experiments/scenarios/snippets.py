"""Snippets: a text cut around the words of a question, which are marked."""

from __future__ import annotations

import re
from collections.abc import Iterable

from memlab.support.text.display import safe_line
from memlab.support.text.tokenize import LUCENE_STOP_WORDS

CHARACTERS = 160
"""Characters of a snippet."""

_WORD = re.compile(r"\w+")

Snippet = list[tuple[str, bool]]
"""Parts of a text, each with whether it is a term of the question."""


def snippet(text: str, question: str, characters: int = CHARACTERS) -> Snippet:
    """Cut a text around the first term of the question and mark all its terms, by stems and without stop words.

    >>> snippet("user: My cats sleep.", "Where is the cat?")
    [('user: My ', False), ('cats', True), (' sleep.', False)]
    """
    line = safe_line(text)
    wanted = set(_stems(_WORD.findall(question.lower()))) - set(_stems(LUCENE_STOP_WORDS))
    words = list(_WORD.finditer(line))
    terms = [word.span() for word, stem in zip(words, _stems(w[0].lower() for w in words)) if stem in wanted]
    start = max(min(terms[0][0] - characters // 3, len(line) - characters), 0) if terms else 0
    stop = min(start + characters, len(line))
    parts, at = [("…" * (start > 0), False)], start
    for begin, end in [*(span for span in terms if start <= span[0] and span[1] <= stop), (stop, stop)]:
        parts += [(line[at:begin], False), (line[begin:end], True)]
        at = end
    return [part for part in [*parts, ("…" * (stop < len(line)), False)] if part[0]]


def _stems(terms: Iterable[str]) -> list[str]:
    import Stemmer

    return list(Stemmer.Stemmer("english").stemWords(list(terms)))
