"""Names of months and words for parts of the day in all locales, from Unicode's CLDR as babel has it."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from memlab.support.foreign import read_yaml
from memlab.support.paths import PACKAGE


class LocaleWords(NamedTuple):
    """The words of a locale.

    hours: for a word for a part of the day, the hour of 24 for each hour of 12. months: number of a month's name.
    """

    hours: dict[str, tuple[int, ...]]
    months: dict[str, int]


def plain(text: str) -> str:
    """Return a text with ASCII digits for those of any script, and plain spaces, without marks of direction.

    >>> plain("\\u200f٥/٣/٢٠٢٤\\u202f8")
    '5/3/2024 8'
    """
    return text if text.isascii() else "".join(map(_plain, text))


@cache
def _plain(char: str) -> str:
    kind = unicodedata.category(char)
    return str(unicodedata.decimal(char)) if kind == "Nd" else {"Zs": " ", "Cf": ""}.get(kind, char)


def key(word: str) -> str:
    """Return a word for comparison: small letters, without dots and spaces.

    >>> key("a.\\u00a0m."), key("Π.Μ.")
    ('am', 'πμ')
    """
    return "".join(plain(word).casefold().replace(".", "").split())


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


@cache
def locale_words() -> list[LocaleWords]:
    """Read the words of all locales; takes about a second, once."""
    from babel import Locale
    from babel.localedata import locale_identifiers

    found = []
    halves = read_yaml(PACKAGE / "data" / "chats" / "whatsapp_words.yaml")["halves"]
    for name in sorted(locale_identifiers()):
        locale = Locale.parse(name)
        periods: dict[str, set[str]] = defaultdict(set)
        for widths in locale.day_periods.values():
            for width in ("abbreviated", "wide", "narrow"):
                for period, word in widths.get(width, {}).items():
                    periods[key(word)].add(period)
        for half, words in halves.get(locale.language, {}).items():
            for word in words:
                periods.setdefault(key(word), {half})
        rules = dict(locale.day_period_rules.get(None, {}))
        hours = {word: meant for word, named in periods.items() if (meant := hours_of(named, rules))}
        months = {key(word): number for context in ("stand-alone", "format") for width in ("wide", "abbreviated")
                  for number, word in locale.months[context][width].items()}
        found.append(LocaleWords(hours, months))
    return found


@cache
def known_words() -> tuple[frozenset[str], frozenset[str]]:
    """Return the words for parts of the day and the names of months of all locales, as ``key`` has them."""
    words = locale_words()
    return frozenset().union(*(one.hours for one in words)), frozenset().union(*(one.months for one in words))
