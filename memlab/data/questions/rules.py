"""The rules that make questions from statements, as ``words.yaml`` and ``forms.yaml`` have them. English only.

A form is a regular expression in which ``{nouns}`` stands for a list or a block of these files, ``<x ...>`` is the
group ``x``, and other groups do not capture: "my <x {nouns}> is called <answer {title}>".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

from memlab.support.foreign import read_yaml
from memlab.support.paths import PACKAGE

_TABLE: dict[str, Any] = {}
for _file in ("words.yaml", "forms.yaml"):
    _TABLE |= read_yaml(PACKAGE / "data" / "questions" / _file)


@cache
def words(name: str) -> tuple[str, ...]:
    """Return the words of a list (``_`` is a space)."""
    return tuple(word.replace("_", " ") for word in _TABLE[name].split())


def _one_of(options: Iterable[str]) -> str:
    """Return a pattern of one of the words; longer ones first: "weekend" is no "week"."""
    return "|".join(sorted(options, key=lambda word: (-len(word), word)))


BASE = dict(pair.split(":") for pair in words("verbs"))
"""The base form of each past form that is known."""
_TRIOS = [trio.split(":") for trio in words("owners")]
OWNS = {form: owns for base, owns, gerund in _TRIOS for form in (base, gerund)}
"""What she does who owns a thing: "owns" for "own" and "owning"."""

_BLOCKS = {name: _one_of(words(name)) for name, content in _TABLE.items() if isinstance(content, str)} | {
    "bases": _one_of({*BASE.values()}), "pasts": _one_of(BASE), "owning": _one_of(OWNS), "owns": _one_of(OWNS.values())}


def _expand(form: str) -> str:
    form = re.sub(r"<(\w+) ([^<>]*)>", r"(?P<\1>\2)", re.sub(r"\((?!\?)", "(?:", form))
    return re.sub(r"\{([a-z_]+)\}", lambda block: f"(?:{_BLOCKS[block[1]]})", form)


for _name, _form in _TABLE["blocks"].items():
    _BLOCKS[_name] = _expand(_form)


def pattern(form: str, flags: int = 0) -> re.Pattern[str]:
    """Return the pattern of a form."""
    return re.compile(_expand(form), flags)


class Form(NamedTuple):
    """A form of a clause: the kind of fact, its pattern with the group ``answer``, and its question."""

    kind: str
    pattern: re.Pattern[str]
    question: str


def _forms(name: str, end: str = "") -> tuple[Form, ...]:
    return tuple(Form(kind, pattern(form + end), question) for kind, questions in _TABLE[name].items()
                 for question, forms in questions.items() for form in forms)


def first_form(forms: Iterable[Form], clause: str) -> tuple[Form, re.Match[str]] | None:
    """Return the first form that fits the beginning of a clause."""
    return next(((form, match) for form in forms if (match := form.pattern.match(clause))), None)


HEADS, SEGMENTS, PERSON, TEAM = _forms("heads", " "), _forms("segments"), _forms("person"), _forms("team", "{end}")
EMPTY = {kind: pattern(form) for kind, form in _TABLE["empty"].items()}
"""Subjects (or answers, where a form has no subject) of a kind that say too little without their context."""
NAMES = pattern(_TABLE["names"]["in_passing"])

DANGLING = pattern(r"\b({dangling})\b", re.IGNORECASE)
"""Words that need their context, or say nothing: a noun phrase with one of them is not used."""
VAGUE = frozenset(words("vague"))
"""Words that do not tell a thing from another."""
