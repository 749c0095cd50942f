"""My Activity as an HTML page: the same activities as in Takeout's JSON, in the account's language.

Each activity is a ``div`` of class outer-cell: a header with the product, and a first content-cell with the label, a
fixed blank and the prompt, then the attached files, then the time on a line of its own, then the answer. The line of
the time is the only mark between prompt and answer. A later cell links to the conversations. The times are local, with
the name of a zone that is the same for the whole page, summer and winter; the name is not read.

The structure is described by llm_archive/adapters/gemini.py of Tomaz12345/llm-archive, from a Slovene export of 745
activities. Forms of dates in other languages are those that readers of real exports name: converters/google.py of
portable-ai-memory/python-sdk (English, German, Romance languages) and the fixture of a Swedish export.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from urllib.parse import unquote

from memlab.chats.conversation import Tally, attachment
from memlab.chats.markup import to_text
from memlab.chats.source import ExportFile
from memlab.errors import MemlabError

PAGE = ".html"
_CELL, _CONTENT = '<div class="outer-cell', '<div class="content-cell'
_PRODUCT = re.compile(r"gemini|\bbard\b", re.IGNORECASE)
_CHAT = re.compile(r"https://gemini\.google\.com/(?:u/\d+/)?app/(?:c/)?([0-9A-Za-z_-]+)")
_LINE = re.compile(r"<br\s*+/?+>")
_FILE = re.compile(r'<a href="([^"<>]*+)"')
_HOW_MANY = re.compile(r"[^<>]{0,60}\d[^<>]{0,60}")
_TIME = re.compile(
    r"(?:(?P<day>\d{1,2})\.? (?:de )?(?P<name>[^\W\d]{3,12})\.?,? (?:de )?(?P<year>\d{4})"
    r"|(?P<name2>[^\W\d]{3,12})\.? (?P<day2>\d{1,2}), (?P<year2>\d{4})"
    r"|(?P<day3>\d{1,2})\. ?(?P<month3>\d{1,2})\. ?(?P<year3>\d{4})"
    r"|(?P<year4>\d{4})([/-])(?P<month4>\d{1,2})\11(?P<day4>\d{1,2}))"
    r"(?:,? |T)(?P<hour>\d{1,2})[:.](?P<minute>\d{2})[:.](?P<second>\d{2})(?: ?(?P<half>[AaPp])\.? ?[Mm]\.?)?"
    r" ?(?:[A-Z]{1,5}(?:[+-]\d{1,2}(?::?\d{2})?)?|[+-]\d{2}:?\d{2})")
_LIKE_A_TIME = re.compile(r"(?<![\d:])\d{1,2}[:.]\d{2}[:.]\d{2}(?!\d)")
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".heic", ".bmp")
_MONTHS = ("jan janv ene gen", "feb fév fev", "mar mär mrt", "apr avr abr", "may mai maj mag mei", "jun juin giu",
           "jul juil lug", "aug août aoû ago avg", "sep set", "oct okt ott out", "nov", "dec déc dic dez")
_MONTH_OF = {name: number for number, names in enumerate(_MONTHS, start=1) for name in names.split()}


@dataclass(frozen=True)
class Activity:
    """One activity.

    title: the label and the prompt, a fixed blank between them kept. answer: as text. chats: the conversations that it
    names. files: placeholders of what was attached.
    """

    title: str
    moment: date | datetime | None
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


def kind_of_file(name: str) -> str:
    """Return image for the name of a picture, else nothing."""
    return "image" if name.lower().endswith(_PICTURES) else ""


def is_activity_page(content: Any) -> bool:
    """Return whether there is an activity of Gemini in a page."""
    return isinstance(content, str) and any(_of_gemini(cell) for cell in _cells(content))


def activities_of_page(file: ExportFile, tally: Tally) -> Iterator[Activity]:
    """Yield the activities; raise MemlabError naming a time in a form that is not known."""
    for cell in _cells(file.content):
        if not _of_gemini(cell):
            tally.add("activities of other products left out")
        elif activity := _activity(cell, file.name):
            yield activity
        else:
            tally.add("activities without a time left out")


def _cells(page: str) -> Iterator[list[str]]:
    """Yield, for each activity, its header and its content-cells."""
    for cell in page.split(_CELL)[1:]:
        yield cell.split(_CONTENT)


def _of_gemini(cell: list[str]) -> bool:
    return len(cell) > 1 and (is_gemini(to_text(cell[0].partition(">")[2])) or any(map(_CHAT.search, cell[2:])))


def _activity(cell: list[str], where: str) -> Activity | None:
    """Return an activity; None if no line of it is like a time."""
    lines = _LINE.split(cell[1].partition(">")[2])
    unknown = ""
    for place, line in enumerate(lines):
        if place and 12 <= len(line.strip()) <= 80 and "<" not in line and _LIKE_A_TIME.search(text := to_text(line)):
            if moment := _moment(text):
                title, files = _before(lines[:place])
                return Activity(title, moment, to_text("<br>".join(lines[place + 1:])), links("".join(cell[2:])), files)
            unknown = unknown or text
    if unknown:
        raise MemlabError(f"the time '{unknown[:40]}' has a form that is not known", where=where,
                          fix="export My Activity as JSON in Takeout: its times are the same in every language")
    return None


def _before(lines: list[str]) -> tuple[str, tuple[str, ...]]:
    """Return the title and the attached files of the lines before the time."""
    files: list[str] = []
    kept = lines[:1]
    for line in lines[1:]:
        local = [address for address in _FILE.findall(line) if address and ":" not in address and address[0] != "#"]
        if local:
            if not files and len(kept) > 1 and _HOW_MANY.fullmatch(kept[-1].strip()):
                kept.pop()
            files.append(attachment(to_text(line).lstrip("- ") or unquote(local[0]), kind_of_file(local[0])))
        else:
            kept.append(line)
    label, blank, first = kept[0].replace("&nbsp;", "\xa0").partition("\xa0")
    if blank:  # it would become a plain blank, and is the mark of the label
        return to_text(label) + blank + to_text("<br>".join([first, *kept[1:]])), tuple(files)
    return to_text("<br>".join(kept)), tuple(files)


def _moment(text: str) -> datetime | None:
    """Return the local time that a line is, without its zone; None for a form that is not known.

    >>> [f"{_moment(line):%m-%d %H}" for line in (
    ...     "Nov 5, 2025, 1:34:47 PM CEST", "5. nov. 2025, 01:34:47 CEST", "18.04.2026, 17:38:51 MESZ",
    ...     "17 de fev. de 2026, 15:08:20 BRT", "2026/05/21 17:47:55 JST", "4 juli 2026 09:15:00 CEST")]
    ['11-05 13', '11-05 01', '04-18 17', '02-17 15', '05-21 17', '07-04 09']
    >>> _moment("2024-01-31 10:00:00"), _moment("5. brumaire 2025, 01:34:47 CEST")  # a line of a prompt has no zone
    (None, None)
    """
    found = _TIME.fullmatch(text)
    if not found:
        return None
    parts = {name.rstrip("234"): value for name, value in found.groupdict().items() if value}
    name = parts.get("name", "").casefold()
    month = parts.get("month") or next((_MONTH_OF[name[:n]] for n in (4, 3) if name[:n] in _MONTH_OF), 0)
    hour = int(parts["hour"])
    if half := parts.get("half"):
        hour = hour % 12 + 12 * (half in "Pp")
    try:
        return datetime(int(parts["year"]), int(month), int(parts["day"]), hour, int(parts["minute"]),
                        int(parts["second"]))
    except ValueError:
        return None
