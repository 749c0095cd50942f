"""WhatsApp's dates: what a phone of any locale writes, on Android or an iPhone, is read back as it was."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
import yaml
from babel import Locale
from babel.dates import format_date, format_skeleton, format_time
from babel.localedata import locale_identifiers

from memlab.data.chats.whatsapp import split_line
from memlab.data.chats.whatsapp_dates import DateOrder, read_moments
from memlab.support.paths import PACKAGE

WORDS = yaml.safe_load((PACKAGE / "data" / "chats" / "whatsapp_words.yaml").read_text(encoding="utf-8"))
LOCALES = [name for name in locale_identifiers() if name.split("_")[0] in WORDS["clocks"]
           and Locale.parse(name).script in (None, "Hans", "Hant")]
"""The languages of the app, in their countries."""

ZEROS = "0٠۰०০၀๐"
"""Zeros of the digits that phones write: Latin, Arabic, Persian, Devanagari, Bengali, Burmese, Thai."""


def clocks(name: str) -> list[str]:
    """The times of a locale's phones; with 12 hours where CLDR has a word for the half."""
    found = ["short", "medium", "Hm"]
    patterns = {clock: str(Locale.parse(name).datetime_skeletons[clock]) for clock in ("hm", "hms")}
    return found + [clock for clock, pattern in patterns.items() if re.search("[aB]", pattern)]


def written(moments: Sequence[datetime], name: str, date: str, clock: str, iphone: bool, zero: str) -> list[str]:
    """A line for each moment, as a phone of a locale writes it."""
    digits = {48 + n: chr(ord(zero) + n) for n in range(10)}
    lines = []
    for moment in moments:
        day = format_skeleton(date, moment, locale=name) if date == "yMd" else format_date(moment, date, locale=name)
        time = (format_time(moment, clock, locale=name) if clock in ("short", "medium")
                else format_skeleton(clock, moment, locale=name))
        day, time = day.translate(digits), time.translate(digits)
        lines.append(f"\u200e[{day}, {time}] Ann: x" if iphone else f"{day}, {time} - Ann: x")
    return lines


def read_back(lines: Sequence[str], order: DateOrder | None = None) -> list[datetime | None]:
    parts = [split_line(line) for line in lines]
    assert all(part is not None and part.text == "Ann: x" for part in parts), lines[0]
    return read_moments([part.stamp for part in parts if part], order).moments


@pytest.mark.slow
def test_dates_of_every_locale_are_read_back() -> None:
    failed = []
    for number, name in enumerate(LOCALES):
        start = datetime(2010 + number % 39, 1 + number % 12, 1 + number % 28, number % 24, number % 60)
        moments = [start + timedelta(days=3 * day, hours=5 * day % 24) for day in range(12)]  # one is after the twelfth
        for place, clock in enumerate(clocks(name)):
            date, iphone = ("short", "yMd")[number // 2 % 2], (number + place) % 2 == 0
            lines = written(moments, name, date, clock, iphone, ZEROS[number % len(ZEROS)])
            if read_back(lines) != moments:
                failed.append(lines[0])
    assert not failed


def test_words_for_parts_of_the_day_are_read_by_the_hours_of_the_language() -> None:
    day = [datetime(2024, 3, 15, hour, 7) for hour in range(24)]
    for name in ("zh_Hant", "zh_Hans", "fr", "ta", "fil", "bn", "hi", "en", "de", "ar"):
        assert read_back(written(day, name, "short", "Bhm", False, "0")) == day, name


@pytest.mark.parametrize(("date", "moment"), [
    ("5/3/2567", datetime(2024, 3, 5)), ("29/2/2567", datetime(2024, 2, 29)), ("5/3/R1", datetime(2019, 3, 5)),
    ("5/3/H31", datetime(2019, 3, 5)), ("5/3/51", datetime(2051, 3, 5)), ("5/3/52", datetime(2009, 3, 5)),
    ("1/1/1403", None), ("5/3/1445", None), ("5/3/2008", None), ("30/2/2024", None), ("0/1/2024", None),
])
def test_years_of_other_calendars(date: str, moment: datetime | None) -> None:
    assert read_back([f"{date}, 00:00 - Ann: x"], DateOrder.DAY_FIRST) == [moment]
