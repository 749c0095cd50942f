"""The rule of dates and times, wherever they come from: data of the user's own, chats, memories and questions.

* A time with a UTC offset is a moment. It is written in one time zone, and its day is the day there.
* A time without an offset is the reading of a wall clock in that zone, and stays as it is.
* A date without a time of day is a day of that zone, and goes with both.
* Times with and without an offset cannot be put in order, so that whatever holds both is refused.
"""

from __future__ import annotations

from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, time, tzinfo
from difflib import get_close_matches
from typing import Any, TypeGuard
from zoneinfo import ZoneInfo, available_timezones

from memlab.support.errors import MemlabError

FORMS = "2023-05-20, 2023-05-20T18:30 or 2023-05-20T18:30+02:00"
"""How dates and times are written."""


def read_moment(value: object, where: str = "") -> date | datetime:
    """Return a date, or a time with its UTC offset or without; raise MemlabError for anything else.

    A time becomes a plain ``datetime`` whose zone, if it has one, is the offset alone. Moments of the years 1 and 9999
    are refused, since they have no day in some zones.

    >>> read_moment("2023-05-20"), read_moment("2023-05-20T18:30")
    (datetime.date(2023, 5, 20), datetime.datetime(2023, 5, 20, 18, 30))
    >>> read_moment("2023-05-20T18:30-07:00").isoformat()
    '2023-05-20T18:30:00-07:00'
    """
    text = value.isoformat() if isinstance(value, date) else value
    if not isinstance(text, str):
        raise MemlabError(f"expected a date, got {type(value).__name__}", where=where, fix=f"write {FORMS}")
    try:
        if isinstance(value, datetime) or any(mark in text for mark in "Tt "):
            moment = datetime.fromisoformat(text)
        else:  # "2023-05-20+02:00" is refused: ``datetime`` would take the offset for a time of day
            return date.fromisoformat(text)
    except ValueError:
        raise MemlabError(f"'{text:.40}' is no date", where=where, fix=f"write {FORMS}") from None
    if has_offset(moment) and not MINYEAR < moment.year < MAXYEAR:
        raise MemlabError(f"{text:.40} has no day in some time zones", where=where,
                          fix=f"write a moment of the years {MINYEAR + 1} to {MAXYEAR - 1}")
    return moment


def has_offset(value: object) -> TypeGuard[datetime]:
    """Return whether a value is a time with a UTC offset."""
    return isinstance(value, datetime) and value.utcoffset() is not None


def midnight(value: date | datetime) -> datetime:
    """Return the midnight at which a date begins; a time stays as it is."""
    return value if isinstance(value, datetime) else datetime.combine(value, time())


UNNAMED_ZONES = ("localtime", "posixrules", "Factory")
"""Files of a time zone database that name no zone: they differ between machines, or say that none is set."""


def time_zone(name: object, where: str) -> tzinfo:
    """Return a time zone by its name, such as Europe/Rome; raise MemlabError if it is unknown.

    UTC is known on machines without a database of time zones too.
    """
    if not isinstance(name, str) or name in UNNAMED_ZONES:
        raise MemlabError(f"there is no time zone {name!r:.40}", where=where, fix="give a name such as Europe/Rome")
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        names = {part.casefold(): zone for zone in sorted(available_timezones().difference(UNNAMED_ZONES))
                 for part in (zone, zone.rpartition("/")[2])}
        close = get_close_matches(name.casefold(), names, n=1)
        fix = (f"did you mean {names[close[0]]}?" if close else "give a name such as Europe/Rome" if names
               else "pip install tzdata, or give UTC")
        raise MemlabError(f"there is no time zone '{name:.40}' on this machine", where=where, fix=fix) from None


class Clock:
    """The wall clock of one time zone, for times that have either all a UTC offset or none.

    zone: None tells moments in UTC, and the present, beside times without an offset, by the clock of this machine.

    >>> clock = Clock(ZoneInfo("Europe/Rome"))
    >>> clock.local("2023-05-20T23:30-07:00", "said_on"), clock.local(date(2023, 5, 20), "asked_on")
    (datetime.datetime(2023, 5, 21, 8, 30), datetime.datetime(2023, 5, 20, 0, 0))
    >>> clock.local("2023-05-22T08:00", "now")  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    ...
    memlab.support.errors.MemlabError: now: 2023-05-22T08:00:00 has no UTC offset, but 2023-05-20T23:30:00-07:00
    (said_on) has one. Fix: write an offset everywhere or nowhere; a date without a time goes with both
    """

    def __init__(self, zone: tzinfo | None = None) -> None:
        self.zone = zone
        self._example: tuple[datetime, str] | None = None  # the first time, and its place

    @property
    def tells_moments(self) -> bool:
        """Whether the times so far have a UTC offset."""
        return self._example is not None and has_offset(self._example[0])

    def local(self, value: object, where: str) -> datetime:
        """Return a date (its midnight) or time as the zone's wall clock shows it, without a zone.

        Raises MemlabError with ``where`` for what is no date, and for a time of the other kind than those before.
        """
        moment = read_moment(value, where)
        if not isinstance(moment, datetime):
            return midnight(moment)
        first, place = self._example = self._example or (moment, where)
        aware = has_offset(moment)
        if has_offset(first) != aware:
            this, other = ("a", "none") if aware else ("no", "one")
            raise MemlabError(f"{moment.isoformat()} has {this} UTC offset, but {first.isoformat()} ({place}) has "
                              f"{other}", where=where,
                              fix="write an offset everywhere or nowhere; a date without a time goes with both")
        return moment.astimezone(self.zone or UTC).replace(tzinfo=None) if aware else moment

    def now(self) -> datetime:
        """Return what the zone's wall clock shows now."""
        zone = self.zone or (UTC if self.tells_moments else None)  # None is the zone of this machine
        return datetime.now(UTC).astimezone(zone).replace(tzinfo=None)


def order(value: date | datetime | None, clock: Clock) -> tuple[Any, ...]:
    """Return a key that sorts by day, and within a day by moment; what has no date comes first, dates before times.

    The wall clock alone would not do: where summer time ends, it shows an hour twice.
    """
    if value is None:
        return ()
    day = clock.local(value, "").date()
    return (day, value) if isinstance(value, datetime) else (day,)
