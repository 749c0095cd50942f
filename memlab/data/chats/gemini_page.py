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
from typing import Any
from urllib.parse import unquote

from memlab.data.chats.markup import to_text
from memlab.data.chats.whatsapp_dates import read_moments
from memlab.data.chats.whatsapp_patterns import Stamp, read_stamp
from memlab.data.chats.whatsapp_words import plain
from memlab.support.errors import MemlabError

_CELL, _CONTENT = '<div class="outer-cell', '<div class="content-cell'
_LINE = re.compile(r"<br\s*+/?+>")
_FILE = re.compile(r'<a href="([^"<>]*+)"')
_LINK = re.compile(r"https://gemini\.google\.com/[0-9A-Za-z_/-]+")
_HOW_MANY = re.compile(r"[^<>]{0,60}\d[^<>]{0,60}")
_ZONE = re.compile(r" ?(?:(?![AP]M$)[A-Z]{1,5}(?:[+-]\d{1,2}(?::?\d{2})?)?|[+-]\d{2}:?\d{2})$")
_LIKE_A_TIME = re.compile(r"(?<![\d:])\d{1,2}[:.]\d{2}[:.]\d{2}(?!\d)")


def read_page(page: str, name: str) -> list[dict[str, Any]]:
    """Return the activities of a page as Takeout's JSON has them; without a title those that state no time.

    Raises MemlabError naming a time in a form that is not known.
    """
    activities: list[dict[str, Any]] = []
    dated: list[tuple[dict[str, Any], list[str], int, Stamp]] = []
    for cell in (piece.split(_CONTENT) for piece in page.split(_CELL)[1:]):
        links = [{"url": url} for url in _LINK.findall("".join(cell[2:]))]
        activities.append({"header": to_text(cell[0].partition(">")[2]), "title": "", "details": links})
        lines = _LINE.split(cell[1].partition(">")[2]) if len(cell) > 1 else []
        times = [(place, _stamp(lines[place])) for place in range(1, len(lines)) if _looks_like_a_time(lines[place])]
        if found := next(((place, stamp) for place, stamp in times if stamp), None):
            dated.append((activities[-1], lines, *found))
        elif times:
            raise _unknown_time(to_text(lines[times[0][0]]), name)
    reading = read_moments([stamp for *_, stamp in reversed(dated)]) if dated else None  # the newest comes first
    how = f"{name}: dates are read as {reading.order.value}, {reading.reason}" if reading else ""
    for (activity, lines, place, _), moment in zip(dated, reversed(reading.moments) if reading else ()):
        if moment is None:
            raise _unknown_time(to_text(lines[place]), name)
        title, files = _before(lines[:place])
        activity |= {"title": title, "time": moment.isoformat(), "attachedFiles": files, "dates": how,
                     "safeHtmlItem": [{"html": "<br>".join(lines[place + 1:])}]}
    return activities


def is_page(text: str) -> bool:
    """Return whether a text is a page of My Activity."""
    return _CELL in text


def _looks_like_a_time(line: str) -> bool:
    return 12 <= len(line.strip()) <= 80 and "<" not in line and bool(_LIKE_A_TIME.search(to_text(line)))


def _stamp(line: str) -> Stamp | None:
    """Return the time that a line states with a zone, which the line of a prompt does not have."""
    local, *zone = _ZONE.split(plain(to_text(line)), maxsplit=1)
    return read_stamp(local) if zone else None


def _unknown_time(text: str, where: str) -> MemlabError:
    return MemlabError(f"the time '{text[:40]}' has a form that is not known", where=where,
                       fix="export My Activity as JSON in Takeout: its times are the same in every language")


def _before(lines: list[str]) -> tuple[str, list[str]]:
    """Return the title and the names of attached files of the lines before the time."""
    files: list[str] = []
    kept = lines[:1]
    for line in lines[1:]:
        local = [address for address in _FILE.findall(line) if address and ":" not in address and address[0] != "#"]
        if local:
            if not files and len(kept) > 1 and _HOW_MANY.fullmatch(kept[-1].strip()):
                kept.pop()
            files.append(to_text(line).lstrip("- ") or unquote(local[0]))
        else:
            kept.append(line)
    label, blank, first = kept[0].replace("&nbsp;", "\xa0").partition("\xa0")
    if blank:  # it would become a plain blank, and is the mark of the label
        return to_text(label) + blank + to_text("<br>".join([first, *kept[1:]])), files
    return to_text("<br>".join(kept)), files
