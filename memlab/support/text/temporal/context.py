"""The context of a time expression, from which its meaning follows: tense of the verbs, moment of speaking."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from memlab.support.text.temporal.calendar import Window, pick

_NOT_PAST = ("need|feed|seed|speed|bleed|breed|indeed|hundred|wed|sacred|exceed|proceed|succeed|weed|greed|excited|"
             "interested|tired|worried|thrilled|overwhelmed|stressed|supposed|limited|recommended|related|based|"
             "detailed|animated|talented|beloved|concerned|dedicated|scheduled|booked|planned|ahead|instead|bed|red|"
             "used|advanced|naked|shed|sled|biased|skilled|united")
_IRREGULAR = ("was|were|wasn't|weren't|did|didn't|had|hadn't|went|gone|got|gotten|bought|saw|seen|took|taken|made|came|"
              "gave|given|told|said|met|found|felt|left|lost|won|ran|ate|drank|wrote|drove|flew|swam|sang|sold|sent|"
              "spent|slept|stood|taught|thought|threw|broke|brought|built|caught|chose|drew|fell|fought|forgot|grew|"
              "heard|held|hid|kept|knew|laid|led|lent|lit|paid|rode|rang|rose|sat|shook|shot|showed|spoke|stole|"
              "stuck|swore|tore|understood|woke|wore|began|became|been|done|hung|dug|fled|used to")
_SAME_FORM = "put|cut|set|read|hit|hurt|quit|cost|spread|split|shut|let|beat|bet|burst"
_WHO = "i|we|he|she|they|it|who|you"
_PLANS = ("plan(?:s|ning)?|planned for|hop(?:e|ing)|looking forward|can't wait|excited (?:to|for)|needs? to|"
          "ha(?:ve|s) to|should|might|(?-i:may)|would (?:like|love)|'d (?:like|love)|about to|upcoming|coming up|"
          "(?:scheduled|due|booked|set) for|thinking (?:of|about)|considering|intend|prepar(?:e|ing) for|"
          "get(?:ting)? ready|sign(?:ing)? up|remind|see you|let's|let us|wants? to|wanna|gonna|going to|will|won't|"
          "'ll|can|could")
_TIMETABLE = "starts?|begins?|opens?|ends?|leaves?|arrives?|closes?|expires?|runs out|there'?s|there (?:is|are)"
_HAS = rf"(?:{_WHO})(?:'ve got| have| has|'s got) (?:a|an|my|our|the|another|two|three|some|plans)"
_BE = (r"\b(?:(?-i:am)|is|are|isn't|aren't|(?:it|that|what|when|where|he|she|who|here)'s(?! (?:been|got)\b))\b|"
       r"'(?:m|re)\b")
_HABIT = ("best time|takes? place|time to visit|every|each|usually|always|often|typically|generally|normally|"
          "sometimes|once an?|twice an?|times an?|whenever|regularly|tends? to|during peak")
_CUE = re.compile(
    rf"(?P<habit>\b(?:{_HABIT})\b)|(?P<future>\b(?:{_PLANS})\b|'ll\b|\b(?:{_TIMETABLE})\b|\b{_HAS}\b)|(?P<is>{_BE})|"
    rf"(?P<past>\b(?:{_IRREGULAR})\b|\b(?:{_WHO}) (?:just |also |finally |then )?(?:{_SAME_FORM})\b|"
    rf"(?<!\bget )(?<!\bbe )(?<!\bgetting )(?<!\bbeing )\b(?!(?:{_NOT_PAST})\b)[a-z]+ed\b)", re.IGNORECASE)
_END = re.compile(r"[.!?;]+[\"')\]*]*\s|\s[-\u2013\u2014]\s|\n")
_FAR = 300  # characters: verbs further away are ignored
_ABBREVIATED = re.compile(r"\b(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|Dr|Mrs?|Ms|St|vs|a\.m|p\.m)\.\s$")


def tense(line: str, start: int, end: int) -> str | None:
    """Return past, future, is (a plain present of "to be"), habit or None for the expression at line[start:end].

    The last verb before it in its sentence decides, else the first one after it.

    >>> line = "I bought it on Friday! We will paint it on Sunday. The shop opens late on Mondays"
    >>> [tense(line, at, at) for at in (15, 40, 75)]
    ['past', 'future', 'future']
    """
    left, right = _bounds(line, start, end)
    cues = list(_CUE.finditer(line, left, start))
    cue = cues[-1] if cues else _CUE.search(line, end, right)
    return cue.lastgroup if cue else None


def _bounds(line: str, start: int, end: int) -> tuple[int, int]:
    """Return where the sentence around line[start:end] begins and ends."""
    left = max(0, start - _FAR)
    for stop in _END.finditer(line, left, start):
        if not _ABBREVIATED.search(line[max(0, stop.end() - 6) : stop.end()]):
            left = stop.end()
    right = min(len(line), end + _FAR)
    for stop in _END.finditer(line, end, right):
        if not _ABBREVIATED.search(line[max(0, stop.end() - 6) : stop.end()]):
            return left, stop.start()
    return left, right


@dataclass(frozen=True)
class Span:
    """From the first to the last day, or moment; ``unit`` (year, month, day, minute) is the precision."""

    first: date
    last: date
    unit: str = "day"


def span(window: Window | None, unit: str = "day") -> Span | None:
    """Return the span of a window; None if there is none."""
    return Span(*window, unit) if window else None


def one_day(day: date | None) -> Window | None:
    """Return the window of a single day; None if there is none."""
    return (day, day) if day else None


@dataclass(frozen=True)
class MatchContext:
    """A match of a rule in a line, and the moment at which the line was said (TIMEX3's anchor time)."""

    match: re.Match[str]
    anchor: datetime

    def __getitem__(self, group: str) -> str:
        """Return a group in lower case; "" if it matched nothing or the pattern has none of that name."""
        return (self.match.groupdict().get(group) or "").lower()

    @property
    def day(self) -> date:
        """The day on which the line was said."""
        return self.anchor.date()

    def tense(self) -> str | None:
        """Return the tense of the verbs around the expression."""
        return tense(self.match.string, *self.match.span())

    def occurrence(self) -> str | None:
        """Return which occurrence is meant: by "last", "this" or "next", else by the tense; None if neither decides."""
        how = self["how"]
        if how.endswith(("last", "past")):
            return "last"
        if how.endswith(("next", "coming")):
            return "next"
        by_tense = {"past": "past", "future": "future", "is": "future"}.get(self.tense() or "")
        return by_tense or ("future" if how == "this" else None)

    def is_general(self) -> bool:
        """Return whether the line states a general truth: "it is warm in June"."""
        return not self["how"] and self.tense() == "is" and not self.is_personal()

    def is_personal(self) -> bool:
        """Return whether the line is about the speakers."""
        return bool(_PERSONAL.search(self.match.string, 0, self.match.end()))

    def choose(self, options: Iterable[Window | None], default: str | None = None, reach: timedelta | None = None
               ) -> Window | None:
        """Return the option that is meant; ``default`` is the way to choose if nothing else decides.

        With ``reach``, the nearest option is meant if the one chosen lies further away, and that one does not.
        """
        windows = [window for window in options if window]
        how = self.occurrence() or default
        chosen = pick(windows, self.day, how) if how else None
        if reach and (chosen is None or abs(chosen[0] - self.day) > reach):
            near = pick(windows, self.day, "nearest")
            return near if near and abs(near[0] - self.day) <= reach else chosen
        return chosen


_PERSONAL = re.compile(r"\b(?:I|[Mm]y|[Ww]e|[Oo]ur)\b")
