"""Gemini's chats in Google Takeout: My Activity > Gemini Apps, as JSON or HTML.

My Activity is a list of activities, newest first, in files and folders whose names are in the account's language: they
are known by their structure. In JSON an activity has ``header``, ``products``, ``time``, ``title`` (a label such as
"Prompted" and the prompt), ``safeHtmlItem`` (the answer as HTML), ``details`` (links to its conversations), and the
names of attached files; ``gemini_page`` reads the same from HTML. A turn before a branch names all its branches: it is
taken once, into the longest of them. Activities that name no conversation are grouped by ``PAUSE``.

The structure is described, from real exports, by docs/gemini-myactivity-format.md of yuzuponikemi/cc-trace (English)
and docs/policy/external-import-gemini-a2.md of mposition/Tomverse (Korean, links and branches); further by
importer-mappings.md of portable-ai-memory/portable-ai-memory (``titleUrl``, ``details`` with Request and Response) and
Google's schema of My Activity (developers.google.com/data-portability/schema-reference/my_activity).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, timedelta
from typing import Any

from memlab.data.chats.content import attachment, placeholder
from memlab.data.chats.conversation import ChatMessage, Conversation, Role, Tally
from memlab.data.chats.gemini_page import PAGE, Activity, activities_of_page, is_activity_page, is_gemini, links
from memlab.data.chats.markup import to_text
from memlab.data.chats.schema import BOOK, read_book
from memlab.data.chats.source import ExportFile
from memlab.data.chats.times import Time, said_on
from memlab.data.chats.values import entries_of, objects_of, text_of, walk
from memlab.support.clock import midnight

PAUSE = timedelta(minutes=30)
"""Silence that ends a conversation where activities name none; other readers take 30 or 60 minutes."""

LABELS = read_book(BOOK).prompts
"""What stands before a prompt, in the languages that a reader of real exports shows; a Korean prompt has no label."""


def matches(file: ExportFile) -> bool:
    """Return whether the file holds activities of Gemini."""
    return is_activity_page(file.content) if file.ending == PAGE else file.ending == ".json" and any(
        map(_is_activity, entries_of(file)))


def read(files: Sequence[ExportFile], tally: Tally, _: object = None) -> list[Conversation]:
    """Return the conversations; raise MemlabError for what cannot be read."""
    activities = [activity for file in filter(matches, files) for activity in (
        activities_of_page(file, tally) if file.ending == PAGE else _activities(file, tally))]
    once = list(dict.fromkeys(activities))
    tally.add("activities that occur twice, taken once", len(activities) - len(once))
    return _conversations(once, tally)


def _is_activity(entry: dict[str, Any]) -> bool:
    named = any(is_gemini(text_of(name)) for path in ("header", "products.[]") for name in walk(entry, path))
    return isinstance(entry.get("title"), str) and (named or bool(_chats(entry)))


def _chats(entry: dict[str, Any]) -> tuple[str, ...]:
    """Return the conversations that an activity names."""
    return links(" ".join(text_of(url) for path in ("titleUrl", "details.[].url") for url in walk(entry, path)))


def _activities(file: ExportFile, tally: Tally) -> Iterator[Activity]:
    for entry in entries_of(file):
        if not _is_activity(entry):
            tally.add("activities of other products left out")
            continue
        said = {text_of(d.get("name")): text_of(d.get("value")) for d in objects_of(entry.get("details"))}
        answers = [*(to_text(text_of(html)) for html in walk(entry, "safeHtmlItem.[].html")), said.get("Response", "")]
        title = "" if "userInteractions" in entry else text_of(entry["title"])  # whose texts have an unknown form
        named = (text_of(name) for path in ("attachedFiles.[]", "attachedFiles.[].name", "imageFile")
                 for name in walk(entry, path))
        files = [*map(attachment, dict.fromkeys(filter(None, named))), *(
            placeholder("audio") for _ in walk(entry, "audioFiles.[]"))]
        yield Activity(said.get("Request") or title, said_on(entry),
                       "\n\n".join(dict.fromkeys(filter(None, answers))), _chats(entry), tuple(files))


def _conversations(activities: Iterable[Activity], tally: Tally) -> list[Conversation]:
    """Return the conversations of activities that come newest first."""
    in_order = sorted(reversed(list(activities)), key=lambda activity: _seconds(activity.moment))
    labelled = any(without_label(activity.title) is not None for activity in in_order)
    members = Counter(chat for activity in in_order for chat in activity.chats)
    groups: dict[str, list[ChatMessage]] = {}
    last, loose = float("-inf"), ""
    for activity in in_order:
        if not (messages := _messages(activity, labelled)):
            tally.add("other activities left out (uses of the app, feedback, Canvas documents)")
            continue
        tally.add("turns shared by several branches, each taken once", len(activity.chats) > 1)
        key = max(activity.chats, key=lambda chat: (members[chat], chat), default="")
        if not key:
            tally.add(f"prompts without a conversation, grouped by pauses of {PAUSE.seconds // 60} minutes")
            now = _seconds(activity.moment)
            if now - last >= PAUSE.total_seconds() or not activity.moment:
                loose = f" {len(groups)}"  # the id of a conversation has no blank
            last, key = now, loose
        groups.setdefault(key, []).extend(messages)
    return [Conversation("", messages) for messages in groups.values()]


def _seconds(time: Time) -> float:
    """Return the moment for sorting; times of a page have no zone, and what has no time comes first."""
    return midnight(time).replace(tzinfo=UTC).timestamp() if time else float("-inf")


def _messages(activity: Activity, labelled: bool) -> list[ChatMessage]:
    """Return the prompt and its answer; nothing for an activity that is no prompt, where prompts are ``labelled``."""
    prompt = without_label(activity.title)
    if prompt is None and not activity.answer and (labelled or not activity.chats):
        return []
    asked = "\n".join(filter(None, [activity.title if prompt is None else prompt, *activity.files]))
    said: tuple[tuple[Role, str], ...] = (("user", asked), ("assistant", activity.answer))
    return [ChatMessage(role, text, None, activity.moment) for role, text in said if text]


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
