"""WhatsApp's own words in a chat: attachments, deleted and edited messages, calls and notices, in many languages.

The words stand in ``whatsapp_words.yaml``, with their sources. What the structure tells needs no word: the names that
WhatsApp gives its files, and on iPhones the mark of direction before all that the app writes.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from memlab.data.chats.content import attachment, placeholder
from memlab.data.chats.whatsapp_cldr import plain
from memlab.support.foreign import read_yaml
from memlab.support.paths import PACKAGE

MARKS = "\u200e\u200f"
"""Left-to-right and right-to-left mark."""

_PLACEHOLDERS = ("media", "image", "video", "audio", "sticker", "gif", "file", "contact")
_IPHONE_FILE = re.compile(r"<[^<>:\n]{1,30}?\s?: ?([^<>\n]{1,200}\.\w{2,5})>")
_ANDROID_FILE = re.compile(r"([^\n]{1,200}\.\w{2,5}) \(([^()\n]{1,40}(?:\([^()\n]{0,9}\))?)\)$")
_GENERATED = re.compile(r"[A-Z]{3}-\d{8}-WA\d{4}\.")
_QUOTES = (("“", "”"), ("„", "“"), ("«", "»"), ("「", "」"))


class AppWords(NamedTuple):
    """Texts that stand for a whole message, by their kind; parts of notices; beginnings of a file's name."""

    kinds: dict[str, str]
    notices: tuple[str, ...]
    titles: tuple[str, ...]


@cache
def words() -> AppWords:
    """Read the words of all languages."""
    content = read_yaml(PACKAGE / "data" / "chats" / "whatsapp_words.yaml")
    kinds = {_key(text): kind for language in content["texts"].values() for kind, texts in language.items()
             for text in texts}
    notices = tuple(part.casefold() for parts in content["notices"].values() for part in parts)
    return AppWords(kinds, notices, tuple(content["titles"]))


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
