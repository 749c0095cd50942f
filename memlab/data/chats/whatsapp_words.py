"""Words of WhatsApp's exports in many languages: of dates, of attachments, deleted and edited messages, calls, notices.

They stand in ``whatsapp_words.yaml``, with their sources. What the structure tells needs no word: the names that
WhatsApp gives its files, and on iPhones the mark of direction before all that the app writes.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Any, NamedTuple

from memlab.data.chats.content import attachment, placeholder
from memlab.support.foreign import read_yaml
from memlab.support.paths import PACKAGE

MARKS = "\u200e\u200f"
"""Left-to-right and right-to-left mark."""

_PLACEHOLDERS = ("media", "image", "video", "audio", "sticker", "gif", "file", "contact")
_IPHONE_FILE = re.compile(r"<[^<>:\n]{1,30}?\s?: ?([^<>\n]{1,200}\.\w{2,5})>")
_ANDROID_FILE = re.compile(r"([^\n]{1,200}\.\w{2,5}) \(([^()\n]{1,40}(?:\([^()\n]{0,9}\))?)\)$")
_GENERATED = re.compile(r"[A-Z]{3}-\d{8}-WA\d{4}\.")
_QUOTES = (("“", "”"), ("„", "“"), ("«", "»"), ("「", "」"))


class DateWords(NamedTuple):
    """Words of dates in a language: for a part of the day the hours of 24 for those of 12; numbers of months."""

    hours: dict[str, tuple[int, ...]]
    months: dict[str, int]


class AppWords(NamedTuple):
    """Texts that stand for a message, by their kind; parts of notices; beginnings of a file's name; words of dates.

    hours and months: words for parts of the day, and names, of all languages, as ``clock_key`` has them.
    """

    kinds: dict[str, str]
    notices: tuple[str, ...]
    titles: tuple[str, ...]
    clocks: tuple[DateWords, ...]
    joiners: frozenset[str]
    hours: frozenset[str]
    months: frozenset[str]


@cache
def words() -> AppWords:
    """Read the words of all languages."""
    content = read_yaml(PACKAGE / "data" / "chats" / "whatsapp_words.yaml")
    kinds = {_key(text): kind for language in content["texts"].values() for kind, texts in language.items()
             for text in texts}
    notices = tuple(part.casefold() for parts in content["notices"].values() for part in parts)
    clocks = tuple(map(_clock, content["clocks"].values()))
    hours, months = (frozenset(word for clock in clocks for word in clock[place]) for place in (0, 1))
    return AppWords(kinds, notices, tuple(content["titles"]), clocks, frozenset(map(clock_key, content["joiners"])),
                    hours, months)


def _clock(language: dict[str, Any]) -> DateWords:
    late = {**dict.fromkeys(language.get("am", ()), (12, 11)), **dict.fromkeys(language.get("pm", ()), (0, 11)),
            **language.get("parts", {})}  # the hours of 12 that are after noon
    return DateWords({word: tuple(hour + 12 * (first <= hour <= last) for hour in range(12))
                  for word, (first, last) in late.items()},
                 {name: number for number, names in enumerate(language["months"], start=1) for name in names.split()})


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


def clock_key(word: str) -> str:
    """Return a word of a date for comparison: small letters, without dots and spaces.

    >>> clock_key("a.\\u00a0m."), clock_key("Π.Μ.")
    ('am', 'πμ')
    """
    return "".join(plain(word).casefold().replace(".", "").split())


def _key(text: str) -> str:
    return " ".join(plain(text).casefold().split()).strip(".。।۔! ")


def kind_of(text: str) -> str:
    """Return what a whole text of WhatsApp stands for; "" if no source knows it.

    >>> kind_of("<Multimedia omitido>"), kind_of("Данное сообщение удалено."), kind_of("I deleted it")
    ('media', 'deleted', '')
    """
    return "" if len(text) > 100 else words().kinds.get(_key(text.strip("<>" + MARKS + " ")), "")


def is_notice(text: str) -> bool:
    """Return whether a line without a name is one of the notices that a source shows."""
    lowered = plain(text[:300]).casefold()
    return kind_of(text) == "call" or any(part in lowered for part in words().notices)


def opens_a_quote(text: str) -> bool:
    """Return whether a quotation begins in a text and does not end, so a colon after it is inside.

    >>> opens_a_quote('Ann changed the subject from "Trip'), opens_a_quote('Tom "T" Smith')
    (True, False)
    """
    return text.count('"') % 2 == 1 or any(opened in text and text.count(opened) > text.count(closed)
                                           for opened, closed in _QUOTES)


def drop_edit_mark(text: str) -> str | None:
    """Return a text without the remark that it was edited; None if it has none.

    >>> drop_edit_mark("Lima <Se editó este mensaje.>"), drop_edit_mark("a \\u200e<other words>"), drop_edit_mark("<3")
    ('Lima', 'a', None)
    """
    start = text.rfind("<")
    if start < 1 or not text.endswith(">"):
        return None
    inside = text[start + 1:-1]
    marked = text[start - 1] in MARKS and ":" not in inside and not kind_of(inside)
    return text[:start].rstrip(MARKS + " \n") if marked or kind_of(inside) == "edited" else None


def name_attachments(text: str) -> str:
    """Name attachments in one form.

    >>> name_attachments("IMG-20240101-WA0001.jpg (archivo adjunto)\\nThe lake!"), name_attachments("<Media omitted>")
    ('[image: IMG-20240101-WA0001.jpg]\\nThe lake!', '[media]')
    >>> name_attachments("Bild weggelassen")
    '[image]'
    """
    first, newline, caption = text.partition("\n")
    marked = first[:1] in MARKS and first != ""
    line = first.strip(MARKS + " ")
    kind = kind_of(line)
    if kind in _PLACEHOLDERS and (kind != "media" or line.startswith("<")):
        return placeholder(kind) + newline + caption
    if (found := _ANDROID_FILE.match(line)) and (
            marked or _GENERATED.match(found[1]) or words().kinds.get(_key(found[2])) == "attached"):
        return attachment(found[1]) + newline + caption
    return _IPHONE_FILE.sub(lambda match: attachment(match[1]), text)
