"""The first results for display: near copies are merged, and values that a later text replaces are marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import SequenceMatcher

import polars as pl

from memlab.memory.found import line_of, reply_of
from memlab.support.text.tokenize import LUCENE_STOP_WORDS, words

_ASKING = ("what", "which", "who", "whose", "when", "where", "why", "how", "do", "does", "did", "i", "my", "me", "you",
           "your", "we", "our", "have", "has", "had", "now", "current", "currently", "still", "latest", "last")
"""Words that ask, and that say nothing of a topic."""

ALIKE = 0.6
"""Share of words in common, in order, from which two texts are near copies: one statement with two values."""

LONGEST = 200
"""Words of a text that are compared with another."""


@dataclass(frozen=True)
class Shown:
    """One result: its text without a date, the days on which it was said, the place of the last, its reply and copies.

    ``older`` are the places, from 0, of results that say nearly the same on an earlier day, about the question's
    topic.
    """

    text: str
    days: tuple[datetime, ...]
    place: str
    reply: str = ""
    copies: int = 1
    older: tuple[int, ...] = ()


def first_results(question: str, ranked: pl.DataFrame, most: int) -> list[Shown]:
    """Return the first results in the order of their ranks; a text is shown once, and a turn within another is not.

    A place is the session's name, or its number.
    """
    found: dict[str, Shown] = {}
    turns: set[tuple[int, int]] = set()
    for row in ranked.sort("rank").iter_rows(named=True):
        text, its = line_of(row), {(row["session"], turn) for turn in row["turns"]}
        place = row["name"] or f"session {row['session']}"
        day = () if row["date"] is None else (row["date"],)
        if (key := text.casefold()) in found:
            if not its <= turns:
                before = found[key]
                found[key] = replace(before, days=tuple(sorted(before.days + day)), copies=before.copies + 1,
                                     place=place if day > before.days[-1:] else before.place)
        elif its and its <= turns:
            continue
        elif len(found) < most:
            found[key] = Shown(text, day, place, reply_of(row))
        else:
            continue
        turns |= its
    shown = list(found.values())
    return [replace(one, older=older) for one, older in zip(shown, _older(question, shown))]


def _older(question: str, shown: Sequence[Shown]) -> list[tuple[int, ...]]:
    """Return for each result the places of what it replaces; none unless it is the latest of its near copies."""
    terms = words(pl.Series([question, *(one.text for one in shown)]), None, (*LUCENE_STOP_WORDS, *_ASKING), "auto")
    held = {row: {*group["term"]} for (row,), group in terms.group_by("row")}
    asked = held.get(0, set())
    topics = [asked & held.get(number, set()) if one.days else set() for number, one in enumerate(shown, 1)]
    near = [[other for other in range(len(shown)) if other != number and topics[number] & topics[other]
             and _near_copies(one.text, shown[other].text)] for number, one in enumerate(shown)]
    return [tuple(sorted(other for other in others if shown[other].days[-1] < shown[number].days[-1]))
            if all(shown[other].days[-1] <= shown[number].days[-1] for other in others) else ()
            for number, others in enumerate(near)]


def _near_copies(one: str, other: str) -> bool:
    """Return whether two texts say the same with another value, by the longest runs of words that both have.

    >>> _near_copies("My manager is Ana.", "My manager is Ben."), _near_copies("I like my manager", "I like tea")
    (True, False)
    """
    first, second = (text.casefold().split()[:LONGEST] for text in (one, other))
    return SequenceMatcher(None, first, second, autojunk=False).ratio() >= ALIKE
