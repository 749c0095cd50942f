"""The parts of a question, by cautious rules.

What is split: a choice ("which first, A or B?"), "between A and B", "since A when B", "A before B did C", a comparison
("compared to", "than"), two counted nouns ("how many A and B did"), a list that is counted or summed, and two names
("do Ann and Bob"). A part consists of the question's own words; one with too few of them is not split off.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from memlab.query.classify import Rules

MOST = 4
"""Parts of a question, at most."""

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
    """Return the parts of a question; none if the rules see no parts that could be searched for alone.

    >>> parts_of("Which event happened first, the road trip to the coast or the arrival of the new lens?")
    ['the road trip to the coast', 'the arrival of the new lens']
    >>> parts_of("How much did I spend on car wash and parking ticket?")
    ['How much did I spend on car wash', 'How much did I spend on parking ticket']
    >>> parts_of("Where did I buy bread and milk?")
    []
    """
    kind = Rules.classify(question)[0]
    if kind in ("preference", "assistant"):  # long stories, whose "and" does not separate what is asked
        return []
    asked, titles = _masked(" ".join(question.split()).rstrip("?!. "))
    for split in _SPLITS:
        found = list(dict.fromkeys(p.strip(" ,.;:") for p in split(asked, kind)))
        if len(found) > 1 and all(_has_content(p) for p in found):
            return [_MASK.sub(lambda m: titles[int(m[1])], p) for p in found[:MOST]]
    return []


def _masked(text: str) -> tuple[str, list[str]]:
    """Return the text with a placeholder for each quoted title, so that no rule looks inside, and the titles."""
    titles = _QUOTED.findall(text)
    numbers = iter(range(len(titles)))
    return _QUOTED.sub(lambda _: f"title{next(numbers)}", text), titles


def _has_content(part: str, least: int = 1) -> bool:
    """Return whether a part has at least so many words that carry meaning."""
    return sum(w.lower() not in _EMPTY for w in _WORD.findall(part)) >= least


def _choice(asked: str, kind: str) -> list[str]:  # noqa: ARG001 (all splits have one signature)
    found = _CHOICE.search(asked)
    return [found["a"], found["b"]] if found else []


def _between(asked: str, kind: str) -> list[str]:  # noqa: ARG001
    found = _BETWEEN.search(asked)
    if not found:
        return []
    rest = found["rest"]
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


def _clauses(asked: str, kind: str) -> list[str]:
    if kind not in ("temporal", "counting") and not _MEASURED.search(asked) and "compared" not in asked:
        return []
    for pattern in _CLAUSES:
        found = pattern.search(asked)
        if found and _has_content(found["a"], 2) and _has_content(found["b"], 2):
            return [found["a"], found["b"]]
    return []


def _counted(asked: str, kind: str) -> list[str]:  # noqa: ARG001
    found = _COUNTED.search(asked)
    return [f"{found['head']} {found[side]} {found['rest']}" for side in "ab"] if found else []


def _listed(asked: str, kind: str) -> list[str]:  # noqa: ARG001
    found = _LISTED.search(asked)
    if not found or not _MEASURED.search(asked):
        return []
    head = found["head"]
    items = [*re.split(r",\s*", found["a"]), found["b"]]
    verbs = rf"\b(?:{_AUX}|and|or|when|if|while)\b"
    clause = rf"^(?:{_AUX}|then|how|what|when|it|i|we|they|he|she|receive|get|buy|go)\b"
    if any(re.search(verbs, item, re.IGNORECASE) for item in items[:-1]) or re.search(clause, items[-1], re.IGNORECASE):
        return []
    preposition = head.rsplit(" ", 1)[-1]
    items = [re.sub(rf"^{preposition} ", "", item, flags=re.IGNORECASE) for item in items]
    return [f"{head} {item}" for item in items] if all(_has_content(item) for item in items) else []


def _named(asked: str, kind: str) -> list[str]:  # noqa: ARG001
    found = _NAMED.search(asked)
    if not found or "together" in asked.lower():  # what two people did together is found in one place
        return []
    return [f"{found['head']}{found[side]} {found['rest']}" for side in "ab"]


_SPLITS: tuple[Split, ...] = (_choice, _between, _clauses, _counted, _listed, _named)
