"""What an expression of time is seen from (a place in a line, a moment), and what it stands for (a span)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime

from memlab.days import Window
from memlab.write.dates_tense import tense


@dataclass(frozen=True)
class Span:
    """From the first to the last day, or moment; ``unit`` (year, month, day, minute) is how exactly it is known."""

    first: date
    last: date
    unit: str = "day"


@dataclass(frozen=True)
class Place:
    """Where an expression stands: a match in a line, and the moment at which the line is said."""

    match: re.Match[str]
    said: datetime

    def __getitem__(self, group: str) -> str:
        """Return a group in lower case; "" where it took no part or is none of the pattern's."""
        found = self.match.groupdict().get(group)
        return found.lower() if found else ""

    @property
    def day(self) -> date:
        """The day on which it is said."""
        return self.said.date()

    def tense(self) -> str | None:
        """Tell past, future or habit from the verbs around."""
        return tense(self.match.string, *self.match.span())


def window(found: Window | None, unit: str = "day") -> Span | None:
    """Make a span of first and last day."""
    return Span(*found, unit) if found else None


def how_of(place: Place) -> str | None:
    """Say which occurrence is meant: by "last", "this" or "next", else by the tense; None where nothing tells."""
    how = place["how"]
    if how.endswith(("last", "past")):
        return "last"
    if how.endswith(("next", "coming")):
        return "next"
    told = {"past": "past", "future": "future", "is": "future"}.get(place.tense() or "")
    return told or ("future" if how == "this" else None)


def ours(place: Place) -> bool:
    """Tell whether the line speaks of those who talk, not of how things are in general."""
    return bool(_OURS.search(place.match.string, 0, place.match.end()))


_OURS = re.compile(r"\b(?:I|[Mm]y|[Ww]e|[Oo]ur)\b")
