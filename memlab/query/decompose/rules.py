"""The parts of a question, by cautious rules.

The rules split a choice ("which first, A or B?"), "between A and B", "since A when B", "A before B did C", a comparison
("compared to", "than"), two counted nouns ("how many A and B did"), a list that is counted or summed, and two names
("do Ann and Bob"). A part consists of the question's own words; one with too few of them is not split off.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from memlab.query.classify import Rules

MOST = 4
"""Most parts per question."""

LONGEST = 1000
"""Letters of the longest question that is split; the time of some rules grows with the square of the length."""

_AUX = r"(?:did|do|does|have|has|had|is|are|was|were|will|would|can|could|am)"
_EMPTY = frozenset(re.findall(r"\w+", """
    a an the i me my we us our you your he him his she her it its they them their this that these those of to in on at
    for from with by about and or not no did do does have has had is are was were be been am will would can could what
    which who whom whose when where why how many much more most first last day days week weeks month months year years
    time times date now today before after since between one two other ones each both total so far then currently
    current previous previously go get got get started start"""))
_WORD = re.compile(r"[\w'’-]+")
_MASK = re.compile(r"\btitle(\d+)\b")
_QUOTED = re.compile(r"(?<!\w)(?:'[^']+(?:'\w[^']*)*'|\"[^\"]+\"|“[^”]+”|‘[^’]+’)(?!\w)")
_THE_DAY = re.compile(r"(?:the|my|our)?\s*(?:day|date|time|moment|week)\b(?:\s+(?:that|when|on which))?\s+",
                      re.IGNORECASE)
_MEASURED = re.compile(r"\b(?:how (?:much|many|long)|total|number of|amount|average|sum|percentage|including)\b",
                       re.IGNORECASE)

_CHOICE = re.compile(r"^(?:which|who|what|did|was|were|is|do|does)\b.*?[,:]\s*(?P<a>[^,:]+?),?\s+or\s+(?P<b>[^,]+)$",
                     re.IGNORECASE)
_BETWEEN = re.compile(r"\bbetween\s+(?P<rest>.+)$", re.IGNORECASE)
_CLAUSES = tuple(re.compile(p, re.IGNORECASE) for p in (
    r"\bsince\s+(?P<a>.+?)\s+when\s+(?P<b>.+)$",
    r"^how long had\s+(?P<a>.+?)\s+when\s+(?P<b>.+)$",
    r"^how (?:many \w+|long|much \w+) (?:before|after) (?P<a>.+?) (?:did|do|does) (?P<b>.+)$",
    r"^(?P<a>.+?) (?:before|after) (?P<b>(?:\w+ing|i|we|he|she|they) .+)$",
    r"^(?P<a>.+?),? (?:compared (?:to|with)|(?<!other )(?<!rather )than) (?P<b>.+)$",
))
_NOUN = rf"(?:(?!\b{_AUX}\b)[\w'’ -])+?"
_COUNTED = re.compile(rf"^(?P<head>how many(?: (?:different|total|new))?) (?P<a>{_NOUN}) (?:and|or) (?P<b>{_NOUN}) "
                      rf"(?P<rest>{_AUX} .+)$", re.IGNORECASE)
_LISTED = re.compile(r"^(?P<head>.+\b(?:including|on|for|of|in|from|at|to|with|finish|read|watch|visit))\s+"
                     r"(?P<a>[^?]+?),?\s+and\s+(?P<b>[^?]+?)(?:\s+(?:combined|altogether|in total|together))?$",
                     re.IGNORECASE)
_NAMED = re.compile(rf"^(?P<head>.*\b(?i:{_AUX}) )(?:both )?(?P<a>[A-Z][a-z]+) and (?P<b>[A-Z][a-z]+) (?:both )?"
                    r"(?P<rest>[a-z].+)$")

Split = Callable[[str, str], list[str]]


def parts_of(question: str) -> list[str]:
    """Return the parts of a question; none if the rules find no parts that can be searched for alone.

    >>> parts_of("Which event happened first, the road trip to the coast or the arrival of the new lens?")
    ['the road trip to the coast', 'the arrival of the new lens']
    >>> parts_of("How much did I spend on car wash and parking ticket?")
    ['How much did I spend on car wash', 'How much did I spend on parking ticket']
    >>> parts_of("Where did I buy bread and milk?")
    []
    """
    kind = Rules.classify(question)[0]
    if kind in ("preference", "assistant"):  # often long stories, whose "and" separates no parts
        return []
    if len(question) > LONGEST:
        return []
    masked, titles = _mask_titles(" ".join(question.split()).rstrip("?!. "))
    for split in _SPLITS:
        parts = list(dict.fromkeys(part.strip(" ,.;:") for part in split(masked, kind)))
        if len(parts) > 1 and all(map(_has_content, parts)):
            return [_MASK.sub(lambda m: titles[int(m[1])], part) for part in parts[:MOST]]
    return []


def _mask_titles(text: str) -> tuple[str, list[str]]:
    """Return the text with a placeholder for each quoted title, so that no rule looks inside, and the titles."""
    titles = _QUOTED.findall(text)
    numbers = iter(range(len(titles)))
    return _QUOTED.sub(lambda _: f"title{next(numbers)}", text), titles


def _has_content(part: str, least: int = 1) -> bool:
    """Return whether a part has at least ``least`` words that carry meaning."""
    return sum(w.lower() not in _EMPTY for w in _WORD.findall(part)) >= least


def _choice(question: str, kind: str) -> list[str]:  # noqa: ARG001 (all splits have one signature)
    match = _CHOICE.search(question)
    return [match["a"], match["b"]] if match else []


def _between(question: str, kind: str) -> list[str]:  # noqa: ARG001
    match = _BETWEEN.search(question)
    if not match:
        return []
    rest = match["rest"]
    ands = [m.span() for m in re.finditer(r",? and ", rest)]
    marked = [span for span in ands if _THE_DAY.match(rest, span[1])]
    if _THE_DAY.match(rest) and marked:
        ands = marked[:1]
    if len(ands) != 1:
        return []
    a, b = (_THE_DAY.sub("", part, count=1) if _THE_DAY.match(part) else part
            for part in (rest[: ands[0][0]], rest[ands[0][1]:]))
    if not _has_content(b, 2):  # "between Ann adopting Rex and Bo"
        b = f"{a.rpartition(' ')[0]} {b}"
    return [a, b] if _has_content(a, 2) else []


def _clauses(question: str, kind: str) -> list[str]:
    if kind not in ("temporal", "counting") and not _MEASURED.search(question) and "compared" not in question:
        return []
    for pattern in _CLAUSES:
        match = pattern.search(question)
        if match and _has_content(match["a"], 2) and _has_content(match["b"], 2):
            return [match["a"], match["b"]]
    return []


def _count(question: str, kind: str) -> list[str]:  # noqa: ARG001
    match = _COUNTED.search(question)
    return [f"{match['head']} {match[side]} {match['rest']}" for side in "ab"] if match else []


def _list(question: str, kind: str) -> list[str]:  # noqa: ARG001
    match = _LISTED.search(question)
    if not match or not _MEASURED.search(question):
        return []
    head = match["head"]
    items = [*re.split(r",\s*", match["a"]), match["b"]]
    verbs = rf"\b(?:{_AUX}|and|or|when|if|while)\b"
    clause = rf"^(?:{_AUX}|then|how|what|when|it|i|we|they|he|she|receive|get|buy|go)\b"
    if any(re.search(verbs, item, re.IGNORECASE) for item in items[:-1]) or re.search(clause, items[-1], re.IGNORECASE):
        return []
    preposition = head.rsplit(" ", 1)[-1]
    items = [re.sub(rf"^{preposition} ", "", item, flags=re.IGNORECASE) for item in items]
    return [f"{head} {item}" for item in items] if all(_has_content(item) for item in items) else []


def _names(question: str, kind: str) -> list[str]:  # noqa: ARG001
    match = _NAMED.search(question)
    if not match or "together" in question.lower():  # one memory tells what two people did together
        return []
    return [f"{match['head']}{match[side]} {match['rest']}" for side in "ab"]


_SPLITS: tuple[Split, ...] = (_choice, _between, _clauses, _count, _list, _names)
