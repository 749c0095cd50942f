"""My Activity as an HTML page: the same activities as in Takeout's JSON, in the account's language.

Each activity is a ``div`` of class outer-cell: a header with the product, and a first content-cell with the label, a
fixed blank and the prompt, then the attached files, then the time on a line of its own, then the answer. The line of
the time is the only mark between prompt and answer. A later cell links to the conversations. The times are local, with
the name of a zone that is the same for the whole page, summer and winter; the name is not read.

The structure is described by llm_archive/adapters/gemini.py of Tomaz12345/llm-archive, from a Slovene export of 745
activities. Dates are read as those of WhatsApp are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from memlab.data.chats.content import attachment
from memlab.data.chats.conversation import Tally
from memlab.data.chats.markup import to_text
from memlab.data.chats.source import ExportFile
from memlab.data.chats.times import Time
from memlab.data.chats.whatsapp_dates import read_moments
from memlab.data.chats.whatsapp_patterns import Stamp, read_stamp
from memlab.data.chats.whatsapp_words import plain
from memlab.support.errors import MemlabError

PAGE = ".html"
_CELL, _CONTENT = '<div class="outer-cell', '<div class="content-cell'
_PRODUCT = re.compile(r"gemini|\bbard\b", re.IGNORECASE)
_CHAT = re.compile(r"https://gemini\.google\.com/(?:u/\d+/)?app/(?:c/)?([0-9A-Za-z_-]+)")
_LINE = re.compile(r"<br\s*+/?+>")
_FILE = re.compile(r'<a href="([^"<>]*+)"')
_HOW_MANY = re.compile(r"[^<>]{0,60}\d[^<>]{0,60}")
_ZONE = re.compile(r" ?(?:(?![AP]M$)[A-Z]{1,5}(?:[+-]\d{1,2}(?::?\d{2})?)?|[+-]\d{2}:?\d{2})$")
_LIKE_A_TIME = re.compile(r"(?<![\d:])\d{1,2}[:.]\d{2}[:.]\d{2}(?!\d)")


@dataclass(frozen=True)
class Activity:
    """One activity.

    title: the label and the prompt, a fixed blank between them kept. answer: as text. chats: the conversations that it
    names. files: placeholders of what was attached.
    """

    title: str
    moment: Time
    answer: str
    chats: tuple[str, ...]
    files: tuple[str, ...]


def is_gemini(product: str) -> bool:
    """Return whether a product's name, in any language, is that of Gemini's app, or of Bard before it.

    >>> is_gemini("Gemini-appar"), is_gemini("Search"), is_gemini("gemini.google.com")  # the last: a page that was seen
    (True, False, False)
    """
    return "." not in product and bool(_PRODUCT.search(product))


def links(text: str) -> tuple[str, ...]:
    """Return the conversations whose addresses stand in a text.

    >>> links("https://gemini.google.com/app/b1: https://gemini.google.com/u/2/app/a2 https://gemini.google.com/gems/x")
    ('b1', 'a2')
    """
    return tuple(dict.fromkeys(_CHAT.findall(text)))


def is_activity_page(content: Any) -> bool:
    """Return whether there is an activity of Gemini in a page."""
    return isinstance(content, str) and any(map(_of_gemini, _cells(content)))


def activities_of_page(file: ExportFile, tally: Tally) -> Iterator[Activity]:
    """Yield the activities; raise MemlabError naming a time in a form that is not known."""
    dated: list[tuple[list[str], int, Stamp, tuple[str, ...]]] = []
    for cell in _cells(file.content):
        if not _of_gemini(cell):
            tally.add("activities of other products left out")
            continue
        lines = _LINE.split(cell[1].partition(">")[2])
        times = [(place, _stamp(lines[place])) for place in range(1, len(lines)) if _looks_like_a_time(lines[place])]
        if found := next(((place, stamp) for place, stamp in times if stamp), None):
            dated.append((lines, *found, links("".join(cell[2:]))))
        elif times:
            raise _unknown_time(to_text(lines[times[0][0]]), file.name)
        else:
            tally.add("activities without a time left out")
    if not dated:
        return
    reading = read_moments([stamp for _, _, stamp, _ in reversed(dated)])  # the newest comes first
    tally.remarks.append(f"{file.name}: dates are read as {reading.order.value}, {reading.reason}")
    for (lines, place, _, chats), moment in zip(dated, reversed(reading.moments)):
        if moment is None:
            raise _unknown_time(to_text(lines[place]), file.name)
        title, files = _before(lines[:place])
        yield Activity(title, moment, to_text("<br>".join(lines[place + 1:])), chats, files)


def _cells(page: str) -> Iterator[list[str]]:
    """Yield, for each activity, its header and its content-cells."""
    yield from (cell.split(_CONTENT) for cell in page.split(_CELL)[1:])


def _of_gemini(cell: list[str]) -> bool:
    return len(cell) > 1 and (is_gemini(to_text(cell[0].partition(">")[2])) or any(map(_CHAT.search, cell[2:])))


def _looks_like_a_time(line: str) -> bool:
    return 12 <= len(line.strip()) <= 80 and "<" not in line and bool(_LIKE_A_TIME.search(to_text(line)))


def _stamp(line: str) -> Stamp | None:
    """Return the time that a line states with a zone, which the line of a prompt does not have."""
    local, *zone = _ZONE.split(plain(to_text(line)), maxsplit=1)
    return read_stamp(local) if zone else None


def _unknown_time(text: str, where: str) -> MemlabError:
    return MemlabError(f"the time '{text[:40]}' has a form that is not known", where=where,
                       fix="export My Activity as JSON in Takeout: its times are the same in every language")


def _before(lines: list[str]) -> tuple[str, tuple[str, ...]]:
    """Return the title and the attached files of the lines before the time."""
    files: list[str] = []
    kept = lines[:1]
    for line in lines[1:]:
        local = [address for address in _FILE.findall(line) if address and ":" not in address and address[0] != "#"]
        if local:
            if not files and len(kept) > 1 and _HOW_MANY.fullmatch(kept[-1].strip()):
                kept.pop()
            files.append(attachment(to_text(line).lstrip("- ") or unquote(local[0])))
        else:
            kept.append(line)
    label, blank, first = kept[0].replace("&nbsp;", "\xa0").partition("\xa0")
    if blank:  # it would become a plain blank, and is the mark of the label
        return to_text(label) + blank + to_text("<br>".join([first, *kept[1:]])), tuple(files)
    return to_text("<br>".join(kept)), tuple(files)
