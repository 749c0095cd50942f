"""Patterns of dates and times of all locales, and their words for months and parts of the day, from Unicode's CLDR.

WhatsApp writes the date and the time of a message in the phone's own format, which Android and iOS take from CLDR. The
patterns of all locales are pooled, since a phone may join one language with the dates of another region.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from memlab.runtime.foreign import read_yaml
from memlab.runtime.paths import PACKAGE

if TYPE_CHECKING:
    from babel import Locale

LENGTHS = ("short", "medium", "long")
DATE_SKELETONS = ("yMd", "yMMMd")
TIME_SKELETONS = ("Hm", "Hms", "hm", "hms", "Bhm", "Bhms")

GLUE = ("klo", "kl.", "à", "às", "um", "at")
"""Words of CLDR's pattern "date at time", which babel leaves out."""

_TOKEN = re.compile(r"'([^']*)'|(([A-Za-z])\3*)|([^A-Za-z']+)")
_WORD = r"([^\s\d\[\](),،:/-][^\d\[\](),،:/]{0,24}?)"
_PERIOD = r"([^\s\d\[\](),،:/-][^\d\[\]():]{0,24}?)"
_ERA = r"(?:BE|พ\.ศ\.|ค\.ศ\.)?"
_YEAR = rf"((?:R|H|令和|平成) ?\d{{1,2}}|\d{{4}}|\d{{2}})(?: ?{_ERA})?"
"""Of iPhones set to the Buddhist or the Japanese calendar: github.com/starkdmi/whats_json, test/data/calendars. babel
has the patterns of the Gregorian calendar alone."""


class DateOrder(Enum):
    """Order of the fields of a date; the values are what the user reads."""

    DAY_FIRST = "day/month/year"
    MONTH_FIRST = "month/day/year"
    YEAR_FIRST = "year/month/day"
    YEAR_DAY_FIRST = "year/day/month"


ORDERS = {"dMy": DateOrder.DAY_FIRST, "Mdy": DateOrder.MONTH_FIRST, "yMd": DateOrder.YEAR_FIRST,
          "ydM": DateOrder.YEAR_DAY_FIRST}


class CldrPattern(NamedTuple):
    """A pattern of CLDR as a regular expression; letters: the field of each of its groups."""

    regex: re.Pattern[str]
    letters: str


class LocaleWords(NamedTuple):
    """The words of a locale, and its patterns as CLDR spells them.

    hours: for a word for a part of the day, the hour of 24 for each hour of 12. months: number of a month's name.
    spellings: of the words for parts of the day. between: what stands between date and time.
    """

    hours: dict[str, tuple[int, ...]]
    months: dict[str, int]
    spellings: frozenset[str]
    dates: frozenset[str]
    times: frozenset[str]
    between: str


class Cldr(NamedTuple):
    """The patterns of all locales, the words between date and time, and what each locale has of its own."""

    dates: list[CldrPattern]
    times: list[CldrPattern]
    glue: re.Pattern[str]
    locales: dict[str, LocaleWords]
    periods: frozenset[str]
    months: frozenset[str]


class _Plain(dict[int, str | None]):
    """Table for ``str.translate``: digits of any script, spaces of any kind, and no marks of direction."""

    def __missing__(self, code: int) -> str | None:
        char = chr(code)
        kind = unicodedata.category(char)
        self[code] = (str(unicodedata.decimal(char)) if kind == "Nd" else " " if kind == "Zs" else None if kind == "Cf"
                      else char)
        return self[code]


_PLAIN = _Plain()


def plain(text: str) -> str:
    """Return a text with ASCII digits and plain spaces, without marks of direction.

    >>> plain("\\u200f٥/٣/٢٠٢٤\\u202f8")
    '5/3/2024 8'
    """
    return text if text.isascii() else text.translate(_PLAIN)


def key(word: str) -> str:
    """Return a word for comparison: small letters, without dots and spaces.

    >>> key("a.\\u00a0m."), key("Π.Μ.")
    ('am', 'πμ')
    """
    return "".join(plain(word).casefold().replace(".", "").split())


def compile_pattern(pattern: str, strict: bool = False) -> CldrPattern | None:
    """Return a pattern of CLDR as a regular expression; None where it has a field that no export shows.

    strict: whether a number has the length that the pattern gives it. Names of months are words; those that CLDR forms
    of numbers are numbers in ``pattern``.
    """
    source, letters = "", ""
    tokens = _TOKEN.findall(pattern)
    for place, (quoted, run, letter, literal) in enumerate(tokens):
        if not run:
            text = plain(quoted or literal)
            beside = {token[2] for token in tokens[max(place - 1, 0):place + 2]} & {"a", "b", "B"}
            blank = " ?" if beside or text.strip() else " "
            source += re.sub(r"(?:\\ )+", blank, re.escape(text))
            continue
        letter = {"L": "M", "K": "h", "k": "h", "H": "h", "b": "a", "B": "a"}.get(letter, letter)
        if letter == "G":
            source += _ERA
            continue
        if letter not in "yMdhmsa":
            return None
        letters += letter
        two = len(run) == 2
        if letter == "a" or (letter == "M" and len(run) > 2):
            source += _PERIOD if letter == "a" else _WORD
        elif letter == "y":
            source += (r"(\d{2})" if two else r"(\d{4})") if strict else _YEAR
        elif strict:
            source += r"(\d{2})" if two else r"(\d|[1-9]\d)"
        else:
            source += r"(\d{2})" if two and letter in "ms" else r"(\d{1,2})"
    return CldrPattern(re.compile(source), letters)


def _with_numbers(pattern: str, locale: Locale) -> str:
    """Return a date pattern with a number for a month whose names are numbers with a sign, such as 3月."""
    run = next((run for _, run, letter, _ in _TOKEN.findall(pattern) if letter in ("M", "L") and len(run) > 2), "")
    if not run:
        return pattern
    names = locale.months["format"]["abbreviated" if len(run) == 3 else "wide"]
    before, number, after = names[1].partition("1")
    if not number or any(plain(name) != plain(f"{before}{month}{after}") for month, name in names.items()):
        return pattern
    return pattern.replace(run, "".join((f"'{before}'" if before else "", "M", f"'{after}'" if after else "")))


def hours_of(periods: Iterable[str], rules: Mapping[str, list[dict[str, int]]]) -> tuple[int, ...] | None:
    """Return the hour of 24 for each hour of 12 in parts of the day that have one word: that nearest to CLDR's hours.

    >>> hours_of(["pm"], {})[:3], hours_of(["night1"], {"night1": [{"from": 75600, "before": 21600}]})[8:]
    ((12, 13, 14), (20, 21, 22, 23))
    """
    half = {"am", "pm"} & set(periods)
    if len(half) == 1:
        return tuple(range(12)) if "am" in half else tuple(range(12, 24))
    spans = tuple((rule.get("from", rule.get("at", 0)) / 3600, rule.get("before", rule.get("at", 0)) / 3600)
                  for period in sorted(periods) for rule in rules.get(period, ()))
    return _nearest(spans) if spans else None


@cache
def _nearest(spans: tuple[tuple[float, float], ...]) -> tuple[int, ...]:
    def distance(hour: int) -> float:
        return min(0 if (hour - start) % 24 < (end - start) % 24 else min((start - hour) % 24, (hour - end) % 24 + 1)
                   for start, end in spans)

    return tuple(min(hour, hour + 12, key=distance) for hour in range(12))


def _words(locale: Locale, dates: frozenset[str], times: frozenset[str],
           halves: Mapping[str, list[str]]) -> LocaleWords:
    """Return what a locale has of its own; ``halves``: its words before and after noon in other versions of CLDR."""
    rules = dict(locale.day_period_rules.get(None, {}))
    periods: dict[str, set[str]] = defaultdict(set)
    spellings = set()
    for widths in locale.day_periods.values():
        for width in ("abbreviated", "wide", "narrow"):
            for period, word in widths.get(width, {}).items():
                periods[key(word)].add(period)
                spellings.add(plain(word))
    for half, words in halves.items():
        for word in words:
            periods.setdefault(key(word), {half})
    hours = {word: found for word, named in periods.items() if (found := hours_of(named, rules))}
    months = {key(word): number for context in ("stand-alone", "format") for width in ("wide", "abbreviated")
              for number, word in locale.months[context][width].items()}
    between = re.sub(r"'|\{[01]\}", "", plain(str(locale.datetime_formats["short"])))
    return LocaleWords(hours, months, frozenset(spellings), dates, times, between)


@cache
def cldr() -> Cldr:
    """Read the patterns of all locales; takes about a second, once."""
    from babel import Locale
    from babel.localedata import locale_identifiers

    locales: dict[str, LocaleWords] = {}
    glue = set(GLUE)
    halves = read_yaml(PACKAGE / "chats" / "whatsapp_words.yaml")["halves"]
    for name in sorted(locale_identifiers()):
        locale = Locale.parse(name)
        skeletons = locale.datetime_skeletons
        dates = frozenset(_with_numbers(pattern, locale) for pattern in (
            *(locale.date_formats[length].pattern for length in LENGTHS),
            *(skeletons[skeleton].pattern for skeleton in DATE_SKELETONS if skeleton in skeletons)))
        times = frozenset((*(locale.time_formats[length].pattern for length in LENGTHS[:2]),
                           *(skeletons[skeleton].pattern for skeleton in TIME_SKELETONS if skeleton in skeletons)))
        locales[name] = _words(locale, dates, times, halves.get(locale.language, {}))
        glue |= {text[3:-3].replace("'", "") for text in map(str, locale.datetime_formats.values())
                 if re.fullmatch(r"\{[01]\}.*\{[01]\}", text)}
    cores = {re.escape(core) for text in glue if (core := plain(text).strip(" ,،"))}
    return Cldr([found for found in _pool(words.dates for words in locales.values()) if found.letters in ORDERS],
                [found for found in _pool(words.times for words in locales.values()) if "h" in found.letters],
                re.compile("(?:" + "|".join(sorted(cores, key=len, reverse=True)) + ") ?"), locales,
                frozenset().union(*(words.hours for words in locales.values())),
                frozenset().union(*(words.months for words in locales.values())))


def _pool(patterns: Iterable[frozenset[str]]) -> list[CldrPattern]:
    """Return the patterns of all locales, each expression once."""
    compiled = (compile_pattern(pattern) for pattern in sorted(set().union(*patterns)))
    return list({(pattern.regex.pattern, pattern.letters): pattern for pattern in compiled if pattern}.values())
