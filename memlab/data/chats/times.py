"""Times of messages, for all readers of exports: what a field of time is called, and the forms of its value.

Forms: ISO 8601 and RFC 2822; seconds, ms, µs or ns since 1970, as number or text; 20240301 and 20240301094000; any of
these in an object, such as MongoDB's ``$date``. A number is read in the one unit that gives a year from 2000 to 2099.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, Literal

from memlab.support.clock import FORMS, has_offset, read_moment
from memlab.support.errors import MemlabError

FIX = f"write {FORMS}, or seconds since 1970"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _END = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (2000, 2100))
_UNITS = (1, 1e3, 1e6, 1e9)
_LONGEST = 60
"""Characters of a time at most."""

_ALONE = ("at|on|when|date|day|time|stamp|ts|epoch|unix|utc|created|inserted|posted|published|received|said|sent|"
          "started|submitted|edited|modified|updated")
_BESIDE = "create|creation|last|update|in|send|post|start|message|msg|chat|conversation|thread|entry|turn|event"
_UNIT = "[mun]s|(?:milli|micro|nano)?s(?:ec(?:ond)?s?)?"
_NAME = re.compile(rf"(?:{_BESIDE})*(?:{_ALONE})(?:{_BESIDE}|{_ALONE})*(?:{_UNIT})?")
_CHANGE = re.compile("last|update|modified|edited")
_FORMS = ("%b %d, %Y %I:%M:%S %p", "%A, %B %d, %Y at %I:%M:%S %p", "%A, %B %d, %Y at %I:%M:%S %p UTC",
          "%m/%d/%Y %H:%M:%S %z")
"""Forms of other programs; the last is that of .NET for moments, in no country's form."""

_WORDS = {"answer", "content", "id", "message", "name", "prompt", "query", "text", "title"}
"""Fields of words, which may themselves be a time."""


@dataclass(frozen=True)
class UnreadTime:
    """A field that looks like a time and cannot be read as one; it is false, as no time is."""

    field: str
    value: str

    def __bool__(self) -> Literal[False]:
        return False


Time = date | datetime | UnreadTime | None
"""When something was said: in UTC where the export states a zone, else the local time or the day; None for no time."""


def said_on(holder: Mapping[str, Any]) -> Time:
    """Return when an object with fields of any names was made: its creation, else another time, else its last change.

    >>> said_on({"updatedAt": 1709290000, "insertedAt": "Fri, 01 Mar 2024 10:40:00 +0100"}).isoformat()
    '2024-03-01T09:40:00+00:00'
    >>> said_on({"role": "user", "timestamp": "noon"}), said_on({"role": "user", "date": ""})
    (UnreadTime(field='timestamp', value="'noon'"), None)
    """
    ranked = [(rank, key) for key in holder if (rank := _rank(key)) is not None]
    read = [(rank, not isinstance(time, datetime), time) for rank, key in ranked if (time := read_time(holder[key]))]
    if read:
        return min(read, key=lambda found: found[:2])[2]
    unread = next((key for _, key in ranked if _has_value(holder[key])), None)
    unread = unread or next((key for key, value in holder.items() if _looks_like_time(key, value)), None)
    return None if unread is None else UnreadTime(unread, f"{holder[unread]!r:.40}")


def read_time(value: object, depth: int = 3) -> date | datetime | None:
    """Return the date or moment of a value in any form, in whole seconds; None for anything else.

    depth: of objects that may hold it.

    >>> [read_time(value).isoformat() for value in ("1709286000.0001", 1709286000123, {"$date": "2024-03-01 09:40Z"})]
    ['2024-03-01T09:40:00+00:00', '2024-03-01T09:40:00+00:00', '2024-03-01T09:40:00+00:00']
    >>> read_time(20240301), read_time("soon"), read_time(12)
    (datetime.date(2024, 3, 1), None, None)
    """
    if isinstance(value, Mapping):
        inner = (read_time(part, depth - 1) for part in value.values() if depth)
        return next(filter(None, inner), None)
    if not isinstance(value, int | float | str) or isinstance(value, bool):
        return None
    with suppress(ValueError, OverflowError, MemlabError):
        text = str(value).strip()
        try:
            number = float(text)
        except ValueError:
            return _read_text(text)
        for unit in _UNITS:
            if _FIRST <= number / unit < _END:
                return _EPOCH + timedelta(seconds=int(number / unit))
        digits = f"{number:.0f}"
        if digits.startswith("20") and len(digits) in (8, 12, 14):
            return _read_text(f"{digits[:8]}T{digits[8:]}".removesuffix("T"))
    return None


def _read_text(text: str) -> date | datetime | None:
    """Return the date or time that ISO 8601, RFC 2822, or a mixture such as 2024-03-01 09:40:00 +0000 writes."""
    if len(text) > _LONGEST:
        return None
    for form in _FORMS:
        with suppress(ValueError):
            written = datetime.strptime(" ".join(text.split()), form)
            return (written.replace(tzinfo=UTC) if form.endswith("UTC") else written.astimezone(UTC) if written.tzinfo
                    else written)
    try:
        moment = read_moment(re.sub(" (?=[+-][0-9])", "", re.sub(" (UTC|GMT)$", "Z", text)))
    except MemlabError:
        moment = read_moment(parsedate_to_datetime(text.replace("-0000", "+0000")))
        if not has_offset(moment) and not text[-1].isdigit():  # the name of a zone that nobody can be sure of
            return None
    if not isinstance(moment, datetime):
        return moment
    return (moment.astimezone(UTC) if has_offset(moment) else moment).replace(microsecond=0)


@lru_cache(4096)
def _rank(key: str) -> int | None:
    """Return which of several times counts, the least first; None for a field that is not called like a time.

    >>> [_rank(key) for key in ("createdDateTime", "timestamp_ms", "entry_updated_datetime", "response_time")]
    [0, 1, 2, None]
    """
    name = re.sub("[^a-z]", "", key.lower())
    if len(name) > _LONGEST or not _NAME.fullmatch(name):
        return None
    return 2 if _CHANGE.search(name) else int("creat" not in name)


def _has_value(value: object) -> bool:
    """Return whether a field is filled: durations and flags are no times, and programs write the year 1 for none."""
    if isinstance(value, str):
        return bool(value.strip()) and not value.startswith(("0000", "0001"))
    return isinstance(value, int | float) and 1e7 < abs(value) < 1e30


def _looks_like_time(key: str, value: object) -> bool:
    """Return whether a field of any name holds a time of day, or one called a time holds a moment."""
    is_text = isinstance(value, str) and key not in _WORDS and not value.strip().replace(".", "").isdigit()
    return (is_text or bool(re.search("time|date|stamp", key.lower()))) and isinstance(read_time(value), datetime)
