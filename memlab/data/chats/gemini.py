"""Gemini's chats in Google Takeout: My Activity > Gemini Apps, as JSON or HTML.

My Activity is a list of activities, newest first, in files and folders whose names are in the account's language: they
are known by their structure. In JSON an activity has ``header``, ``products``, ``time``, ``title`` (a label such as
"Prompted" and the prompt), ``safeHtmlItem`` (the answer as HTML), ``details`` (links to its conversations), and the
names of attached files. A turn before a branch names all its branches: it is taken once, into the first of them.

On an HTML page each activity is a ``div`` of class outer-cell: a header with the product, and a first content-cell with
the label, a fixed blank and the prompt, then the attached files, then the time on a line of its own, then the answer.
The line of the time is the only mark between prompt and answer. A later cell links to the conversations. The times are
local, with the name of a zone that is the same for the whole page, summer and winter; the name is not read. Dates are
read as those of WhatsApp are.

The structure is described, from real exports, by docs/gemini-myactivity-format.md of yuzuponikemi/cc-trace (English),
docs/policy/external-import-gemini-a2.md of mposition/Tomverse (Korean, links and branches), and
llm_archive/adapters/gemini.py of Tomaz12345/llm-archive (a Slovene page of 745 activities); further by
importer-mappings.md of portable-ai-memory/portable-ai-memory (``titleUrl``, ``details`` with Request and Response) and
Google's schema of My Activity (developers.google.com/data-portability/schema-reference/my_activity).
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

from memlab.data.chats.content import attachment, objects_of, placeholder, text_of, walk
from memlab.data.chats.conversation import Tally
from memlab.data.chats.markup import to_text
from memlab.data.chats.schema import BOOK, read_book
from memlab.data.chats.whatsapp_dates import Stamp, read_moments, read_stamp
from memlab.data.chats.whatsapp_words import plain
from memlab.support.errors import MemlabError

LABELS = read_book(BOOK).prompts
"""What stands before a prompt, in the languages that a reader of real exports shows; a Korean prompt has no label."""

_PRODUCT = re.compile(r"gemini|\bbard\b", re.IGNORECASE)
_CHAT = re.compile(r"https://gemini\.google\.com/(?:u/\d+/)?app/(?:c/)?([0-9A-Za-z_-]+)")
_CELL, _CONTENT = '<div class="outer-cell', '<div class="content-cell'
_LINE = re.compile(r"<br\s*+/?+>")
_FILE = re.compile(r'<a href="([^"<>]*+)"')
_ZONE = re.compile(r" ?(?:(?![AP]M$)[A-Z]{1,5}(?:[+-]\d{1,2}(?::?\d{2})?)?|[+-]\d{2}:?\d{2})$")
_LIKE_A_TIME = re.compile(r"(?<![\d:])\d{1,2}[:.]\d{2}[:.]\d{2}(?!\d)")


def is_activity(entry: dict[str, Any]) -> bool:
    """Return whether an activity is one of Gemini's app, or of Bard before it; names of products are of any language.

    >>> [is_activity({"title": "Hi", "header": name}) for name in ("Gemini-appar", "Search", "gemini.google.com")]
    [True, False, False]
    """
    names = [text_of(name) for path in ("header", "products.[]") for name in walk(entry, path)]
    named = any("." not in name and _PRODUCT.search(name) for name in names)  # with a dot: a page that was seen
    return isinstance(entry.get("title"), str) and (named or bool(_chat(entry)))


def _chat(entry: dict[str, Any]) -> str:
    """Return the first conversation that an activity names; "" for none."""
    urls = " ".join(text_of(url) for path in ("titleUrl", "details.[].url") for url in walk(entry, path))
    match = _CHAT.search(urls)
    return match[1] if match else ""


def prompts(entries: list[dict[str, Any]], tally: Tally) -> list[dict[str, Any]]:
    """Return the activities that are prompts, with what was asked and answered, and the conversation."""
    ours = [entry for entry in entries if is_activity(entry)]
    tally.add("activities of other products left out", len(entries) - len(ours))
    tally.remarks += sorted({text_of(entry.get("dates")) for entry in ours} - {""})
    labelled = any(without_label(entry["title"]) is not None for entry in ours)
    asked = []
    for entry in ours:
        said = {text_of(d.get("name")): text_of(d.get("value")) for d in objects_of(entry.get("details"))}
        answers = [*(to_text(text_of(html)) for html in walk(entry, "safeHtmlItem.[].html")), said.get("Response", "")]
        answer, chat = "\n\n".join(dict.fromkeys(filter(None, answers))), _chat(entry)
        title = "" if "userInteractions" in entry else entry["title"]  # whose texts have a form that nobody describes
        prompt = said.get("Request") or without_label(title)
        if prompt is None and not answer and (labelled or not chat) or not (title or prompt or answer):
            tally.add("other activities left out (uses of the app, feedback, Canvas documents)")
            continue
        named = (text_of(name) for path in ("attachedFiles.[]", "attachedFiles.[].name", "imageFile")
                 for name in walk(entry, path))
        files = [*map(attachment, dict.fromkeys(filter(None, named))), *(
            placeholder("audio") for _ in walk(entry, "audioFiles.[]"))]
        asked.append({"prompt": "\n".join(filter(None, [title.strip() if prompt is None else prompt, *files])),
                      "answer": answer, "chat": chat, "time": entry.get("time"), "id": f"{entry.get('time')} {title}"})
    return asked


def without_label(title: str) -> str | None:
    """Return the title without the label that begins it; None if none does.

    >>> without_label("Prompted\xa0Hello"), without_label("Prompting")
    ('Hello', None)
    """
    for label in LABELS:
        rest = title[len(label):]
        if title.startswith(label) and (label[-1] in ":：" or not rest or rest[0].isspace()):
            return rest.strip()
    return None


def read_page(page: str, name: str) -> list[dict[str, Any]]:
    """Return the activities of a page as Takeout's JSON has them, none for another page; no title if a time is missing.

    Raises MemlabError naming a time in a form that is not known.
    """
    activities: list[dict[str, Any]] = []
    dated: list[tuple[dict[str, Any], list[str], int, Stamp | None]] = []
    for cell in (piece.split(_CONTENT) for piece in page.split(_CELL)[1:]):
        activities.append({"header": to_text(cell[0].partition(">")[2]), "title": "", "details": [
            {"url": link[0]} for link in _CHAT.finditer("".join(cell[2:]))]})
        lines = _LINE.split(cell[1].partition(">")[2]) if len(cell) > 1 else []
        if times := [(place, _stamp(line)) for place, line in enumerate(lines) if place and _looks_like_a_time(line)]:
            dated.append((activities[-1], lines, *next((time for time in times if time[1]), times[0])))
    stamps = [stamp for *_, stamp in reversed(dated) if stamp]  # the newest comes first
    order, reason, read = read_moments(stamps) if stamps else (None, "", [])
    how, moments = f"{name}: dates are read as {order and order.value}, {reason}", reversed(read)
    for activity, lines, place, stamp in dated:
        if (moment := next(moments) if stamp else None) is None:
            raise MemlabError(f"the time '{to_text(lines[place])[:40]}' has a form that is not known", where=name,
                              fix="export My Activity as JSON in Takeout: its times are the same in every language")
        title, files = _before(lines[:place])
        activity |= {"title": title, "time": moment.isoformat(), "attachedFiles": files, "dates": how,
                     "safeHtmlItem": [{"html": "<br>".join(lines[place + 1:])}]}
    return activities


def _looks_like_a_time(line: str) -> bool:
    return 12 <= len(line.strip()) <= 80 and "<" not in line and bool(_LIKE_A_TIME.search(to_text(line)))


def _stamp(line: str) -> Stamp | None:
    """Return the time that a line states with a zone, which the line of a prompt does not have."""
    local, *zone = _ZONE.split(plain(to_text(line)), maxsplit=1)
    return read_stamp(local) if zone else None


def _before(lines: list[str]) -> tuple[str, list[str]]:
    """Return the title and the names of attached files of the lines before the time."""
    files: list[str] = []
    kept = lines[:1]
    for line in lines[1:]:
        local = [address for address in _FILE.findall(line) if address and ":" not in address and address[0] != "#"]
        if local:
            files.append(to_text(line).lstrip("- ") or unquote(local[0]))
        else:
            kept.append(line)
    return to_text("<br>".join(kept)), files
