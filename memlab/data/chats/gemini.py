"""Gemini's chats in Google Takeout: My Activity > Gemini Apps, as JSON or HTML.

My Activity is a list of activities, newest first, in files and folders whose names are in the account's language: they
are known by their structure. In JSON an activity has ``header``, ``products``, ``time``, ``title`` (a label such as
"Prompted" and the prompt), ``safeHtmlItem`` (the answer as HTML), ``details`` (links to its conversations), and the
names of attached files; ``gemini_page`` reads the same from HTML. A turn before a branch names all its branches: it is
taken once, into the first of them.

The structure is described, from real exports, by docs/gemini-myactivity-format.md of yuzuponikemi/cc-trace (English)
and docs/policy/external-import-gemini-a2.md of mposition/Tomverse (Korean, links and branches); further by
importer-mappings.md of portable-ai-memory/portable-ai-memory (``titleUrl``, ``details`` with Request and Response) and
Google's schema of My Activity (developers.google.com/data-portability/schema-reference/my_activity).
"""

from __future__ import annotations

import re
from typing import Any

from memlab.data.chats.content import attachment, placeholder
from memlab.data.chats.conversation import Tally
from memlab.data.chats.markup import to_text
from memlab.data.chats.schema import BOOK, read_book
from memlab.data.chats.values import objects_of, text_of, walk

LABELS = read_book(BOOK).prompts
"""What stands before a prompt, in the languages that a reader of real exports shows; a Korean prompt has no label."""

_PRODUCT = re.compile(r"gemini|\bbard\b", re.IGNORECASE)
_CHAT = re.compile(r"https://gemini\.google\.com/(?:u/\d+/)?app/(?:c/)?([0-9A-Za-z_-]+)")


def is_activity(entry: dict[str, Any]) -> bool:
    """Return whether an activity is one of Gemini's app, or of Bard before it; names of products are of any language.

    >>> [is_activity({"title": "Hi", "header": name}) for name in ("Gemini-appar", "Search", "gemini.google.com")]
    [True, False, False]
    """
    names = [text_of(name) for path in ("header", "products.[]") for name in walk(entry, path)]
    named = any("." not in name and _PRODUCT.search(name) for name in names)  # with a dot: a page that was seen
    return isinstance(entry.get("title"), str) and (named or bool(_chat(entry)))


def has_activity(node: Any) -> bool:
    """Return whether one of a file's entries is an activity of Gemini."""
    return any(map(is_activity, objects_of(node)))


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
