"""The first results as people read them: copies merged, and the newest of a topic marked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import polars as pl

from memlab.text.tokenize import LUCENE_STOP_WORDS, words

CHANGES_RESULTS = False
_ASKING = ("what", "which", "who", "whose", "when", "where", "why", "how", "do", "does", "did", "i", "my", "me", "you",
           "your", "we", "our", "have", "has", "had", "now", "current", "currently", "still", "latest", "last")
"""Words that ask, and that say nothing of a topic."""


@dataclass(frozen=True)
class Shown:
    """One result: its text without a date, the days on which it was said, the place of the last, and its copies."""

    text: str
    days: tuple[datetime, ...]
    place: str
    copies: int = 1
    newest: bool = False


def body_of(row: Mapping[str, Any]) -> str:
    """Return the text of a result in one line, without the date above it."""
    text = str(row["text"] or "")
    return " ".join((text.partition("]\n")[2] if row["said_on"] is not None else text).split())


def first_results(question: str, ranked: pl.DataFrame, most: int) -> list[Shown]:
    """Return the first results in the order of their ranks; a text is shown once, and a turn within another is not.

    The newest of a topic is the latest of the results that hold the same words of the question, if they differ in day.
    """
    found: dict[str, Shown] = {}
    turns: set[tuple[int, int]] = set()
    for row in ranked.sort("rank").iter_rows(named=True):
        text, its = body_of(row), {(row["session"], turn) for turn in row["turns"]}
        day = () if row["said_on"] is None else (row["said_on"],)
        if (key := text.casefold()) in found:
            if not its <= turns:
                before = found[key]
                place = f"session {row['session']}" if day > before.days[-1:] else before.place
                found[key] = replace(before, days=tuple(sorted(before.days + day)), place=place,
                                     copies=before.copies + 1)
        elif its and its <= turns:
            continue
        elif len(found) < most:
            found[key] = Shown(text, day, f"session {row['session']}")
        else:
            continue
        turns |= its
    shown = list(found.values())
    return [replace(one, newest=number in _newest(question, shown)) for number, one in enumerate(shown)]


def _newest(question: str, shown: Iterable[Shown]) -> set[int]:
    """Return the numbers of the results that are the latest of several on one topic."""
    listed = list(shown)
    terms = words(pl.Series([question, *(one.text for one in listed)]), None, (*LUCENE_STOP_WORDS, *_ASKING), "auto")
    held = {row: {*group["term"]} for (row,), group in terms.group_by("row")}
    topics: dict[frozenset[str], list[int]] = {}
    for number, one in enumerate(listed):
        if one.days and (shared := held.get(0, set()) & held.get(number + 1, set())):
            topics.setdefault(frozenset(shared), []).append(number)
    return {max(numbers, key=lambda n: listed[n].days[-1]) for numbers in topics.values()
            if len({listed[n].days[-1] for n in numbers}) > 1}
