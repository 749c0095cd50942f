"""Gemini's chats in Google Takeout: My Activity > Gemini Apps (JSON or HTML), and Gemini in Workspace's conversations.

My Activity is a list of activities, newest first, in files and folders whose names are in the account's language: they
are known by their structure. In JSON an activity has ``header``, ``products``, ``time``, ``title`` (a label such as
"Prompted" and the prompt), ``safeHtmlItem`` (the answer as HTML), ``details`` (links to its conversations), and the
names of attached files; ``gemini_page`` reads the same from HTML. A turn before a branch names all its branches: it is
taken once, into the longest of them. Activities that name no conversation are grouped by ``PAUSE``.

The structure is described, from real exports, by docs/gemini-myactivity-format.md of yuzuponikemi/cc-trace (English)
and docs/policy/external-import-gemini-a2.md of mposition/Tomverse (Korean, links and branches); further by
importer-mappings.md of portable-ai-memory/portable-ai-memory (``titleUrl``, ``details`` with Request and Response) and
Google's schema of My Activity (developers.google.com/data-portability/schema-reference/my_activity). Conversations of
Workspace and files of Gems are read as tests/fixtures/imports/gemini of sthayi-ai/sthayi shows them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, timedelta
from typing import Any, ClassVar

from memlab.chats.branches import OTHERS
from memlab.chats.content import attachment, placeholder
from memlab.chats.conversation import ChatMessage, Conversation, Tally, merge_assistant
from memlab.chats.gemini_page import (
    PAGE,
    Activity,
    activities_of_page,
    is_activity_page,
    is_gemini,
    links,
)
from memlab.chats.markup import to_text
from memlab.chats.source import ExportFile
from memlab.chats.times import Time, said_on
from memlab.chats.values import entries_of, object_of, objects_of, text_of
from memlab.errors import MemlabError
from memlab.runtime.clock import midnight
from memlab.runtime.foreign import load_json

PAUSE = timedelta(minutes=30)
"""Silence that ends a conversation where activities name none; other readers take 30 or 60 minutes."""

LABELS = (
    ("Prompted", "Live Prompt", "Asked", "Said", "Branched"),
    ("Eingegebener Prompt:",),
    ("Prompt :", "Prompt:"),
    ("Preguntó:", "Solicitó"),
    ("Fez uma pergunta:", "Perguntou:", "Solicitou"),
    ("Gav instruktionen",),
    ("Poslali ste poziv:",),
    ("送信したメッセージ:",),
    ("분기된",),
)
"""What stands before a prompt, for each language that a reader of real exports shows; a Korean prompt has no label."""

_OTHER_ACTIVITIES = ("Created", "Used", "Selected", "Gave", "Cleared", "Deleted", "Shared", "Added")
_HEAD = re.compile("[^\xa0:：]{1,60}(?:[:：](?=[\xa0 ])|(?=\xa0))")
_TURNS = "conversation_turns"
_SETTINGS = {"gemini_gems_data": "files of Gems left out (instructions, no chats)",
             "gemini_scheduled_actions_data": "files of scheduled actions left out"}


class Gemini:
    """One session for each conversation that the activities name, else for each stretch without a pause."""

    name: ClassVar = "gemini"
    title: ClassVar = "Gemini activity (Google Takeout)"

    def matches(self, file: ExportFile) -> bool:
        """Return whether the file holds activities or a conversation of Gemini, or its Gems."""
        if file.ending == PAGE:
            return file.stem in _SETTINGS or is_activity_page(file.content)
        return _is_workspace(file) or file.ending == ".json" and any(map(_is_activity, entries_of(file)))

    def read(self, files: Sequence[ExportFile], tally: Tally) -> list[Conversation]:
        """Return the conversations; raise MemlabError for what cannot be read, and where there are only Gems."""
        activities: list[Activity] = []
        read = []
        matching = list(filter(self.matches, files))
        for file in matching:
            if file.stem in _SETTINGS and file.ending == PAGE:
                tally.add(_SETTINGS[file.stem])
            elif file.ending == PAGE:
                activities += activities_of_page(file, tally)
            elif _is_workspace(file):
                read.append(_workspace(file, tally))
            else:
                activities += _activities(file, tally)
        if matching and all(file.ending == PAGE and file.stem in _SETTINGS for file in matching):
            raise MemlabError("it holds Gems and scheduled actions, but no chats", where=matching[0].name,
                              fix="in Takeout, choose My Activity and there Gemini Apps, as JSON")
        once = list(dict.fromkeys(activities))
        tally.add("activities that occur twice, taken once", len(activities) - len(once))
        return read + _conversations(once, tally)


def _is_activity(entry: dict[str, Any]) -> bool:
    products = entry.get("products")
    named = [entry.get("header"), *(products if isinstance(products, list) else [])]
    return isinstance(entry.get("title"), str) and (any(is_gemini(text_of(name)) for name in named)
                                                    or bool(_chats(entry)))


def _chats(entry: dict[str, Any]) -> tuple[str, ...]:
    """Return the conversations that an activity names."""
    addresses = [entry.get("titleUrl"), *(detail.get("url") for detail in objects_of(entry.get("details")))]
    return links(" ".join(map(text_of, addresses)))


def _activities(file: ExportFile, tally: Tally) -> Iterator[Activity]:
    for entry in entries_of(file):
        if not _is_activity(entry):
            tally.add("activities of other products left out")
            continue
        notes = objects_of(entry.get("subtitles"))
        tally.add("notes on the Gem of a prompt left out", sum("/gems/" in text_of(note.get("url")) for note in notes))
        said = {text_of(d.get("name")): text_of(d.get("value")) for d in objects_of(entry.get("details"))}
        answers = [to_text(text_of(item.get("html"))) for item in objects_of(entry.get("safeHtmlItem"))]
        answers = [answer for answer in dict.fromkeys([*answers, said.get("Response", "")]) if answer]
        yield Activity(said.get("Request") or text_of(entry["title"]), said_on(entry), "\n\n".join(answers),
                       _chats(entry), tuple(_attached(entry, notes)))


def _attached(entry: dict[str, Any], notes: list[dict[str, Any]]) -> Iterator[str]:
    """Name the files of an activity as the user knew them; the export adds a hash to their names."""
    known = {text_of(note.get("url")): text_of(note.get("name")).lstrip("- ") for note in notes}
    files = entry.get("attachedFiles")
    names = [text_of(object_of(file).get("name") if isinstance(file, dict) else file)
             for file in [*(files if isinstance(files, list) else []), entry.get("imageFile")]]
    for name in dict.fromkeys(filter(None, names)):
        yield attachment(known.get(name) or name)
    sounds = entry.get("audioFiles")
    yield from [placeholder("audio")] * (len(sounds) if isinstance(sounds, list) else 0)


def _conversations(activities: Iterable[Activity], tally: Tally) -> list[Conversation]:
    """Return the conversations of activities that come newest first."""
    in_order = sorted(reversed(list(activities)), key=lambda activity: _seconds(activity.moment))
    labels = labels_of([activity.title for activity in in_order])
    members = Counter(chat for activity in in_order for chat in activity.chats)
    groups: dict[str, list[ChatMessage]] = {}
    last, loose = float("-inf"), ""
    for activity in in_order:
        messages = _messages(activity, labels)
        tally.add("other activities left out (uses of the app, feedback, Canvas documents)", not messages)
        if activity.chats:
            tally.add("turns shared by several branches, each taken once", bool(messages) and len(activity.chats) > 1)
            key = max(activity.chats, key=lambda chat: (members[chat], chat))
        elif messages:
            tally.add(f"prompts without a conversation, grouped by pauses of {PAUSE.seconds // 60} minutes")
            now = _seconds(activity.moment)
            if now - last >= PAUSE.total_seconds() or not activity.moment:
                loose = f" {len(groups)}"  # the id of a conversation has no blank
            last = now
            key = loose
        if messages:
            groups.setdefault(key, []).extend(messages)
    return [Conversation("", messages) for messages in groups.values()]


def _seconds(time: Time) -> float:
    """Return the moment for sorting; times of a page have no zone, and what has no time comes first."""
    return midnight(time).replace(tzinfo=UTC).timestamp() if time else float("-inf")


def _messages(activity: Activity, labels: Sequence[str]) -> list[ChatMessage]:
    """Return the prompt and its answer; nothing for an activity that is no prompt."""
    prompt = without_label(activity.title, labels)
    if prompt is None:
        other = "Prompted" in labels and without_label(activity.title, _OTHER_ACTIVITIES) is not None
        if other or not activity.answer and (labels or not activity.chats):
            return []
        prompt = activity.title
    asked = "\n".join(filter(None, [prompt, *activity.files]))
    messages = [ChatMessage("user", asked, None, activity.moment)] if asked else []
    return messages + ([ChatMessage("assistant", activity.answer, None, activity.moment)] if activity.answer else [])


def labels_of(titles: Sequence[str]) -> tuple[str, ...]:
    """Return what stands before the prompts of an account: the labels of its language, or what half the titles share.

    A language is taken if its labels begin a tenth of the titles. In others the label ends in a colon or a fixed blank,
    and three titles must share it, unless both stand there.

    >>> labels_of(["Prompted Hi", "Prompted Bye"])[0], labels_of([f"Du spurte: {word}" for word in ("A", "B", "C")])
    ('Prompted', ('Du spurte:',))
    """
    counts = [sum(without_label(title, labels) is not None for title in titles) for labels in LABELS]
    if (most := max(counts)) and 10 * most >= len(titles):
        return LABELS[counts.index(most)]
    heads = Counter(match[0] for title in titles if (match := _HEAD.match(title)))
    label, count = max(heads.items(), key=lambda item: (item[1], item[0]), default=("", 0))
    is_sure = count >= 3 or any(title.startswith(f"{label}\xa0") for title in titles) and label[-1:] in (":", "：")
    return (label,) if is_sure and 2 * count >= len(titles) else ()


def without_label(title: str, labels: Iterable[str]) -> str | None:
    """Return the title without the label that begins it; None if none does.

    >>> without_label("Prompted\xa0Hello", ["Prompted"]), without_label("Prompting", ["Prompted", "Prompt"])
    ('Hello', None)
    """
    for label in labels:
        rest = title[len(label):]
        if title.startswith(label) and (label[-1] in ":：" or not rest or rest[0].isspace()):
            return rest.strip()
    return None


def _is_workspace(file: ExportFile) -> bool:
    if isinstance(file.content, str):
        return file.ending == ".txt" and file.content.lstrip().startswith("{") and f'"{_TURNS}"' in file.content
    return file.ending == ".json" and isinstance(file.content, dict) and _TURNS in file.content


def _workspace(file: ExportFile, tally: Tally) -> Conversation:
    """Return a conversation of Gemini in Workspace; of turns with one index the last is taken."""
    content = file.content
    if isinstance(content, str):
        try:
            content = load_json(content)
        except ValueError as fault:
            raise MemlabError(f"this is not JSON ({str(fault)[:80]})", where=file.name,
                              fix="copy the export again") from fault
    content = object_of(content)
    if not isinstance(content.get(_TURNS), list):
        raise MemlabError("expected a list", where=f"{file.name}, field {_TURNS}",
                          fix="give the export as Takeout sent it")
    turns: dict[object, tuple[str, dict[str, Any]]] = {}
    for place, holder in enumerate(objects_of(content[_TURNS])):
        for role in ("user_turn", "system_turn"):
            if turn := object_of(holder.get(role)):
                index = turn.get("turn_index")
                key = (role, index) if isinstance(index, int) else (role, str(place), "")
                tally.add(OTHERS, key in turns)
                turns.pop(key, None)
                turns[key] = (role, turn)
    kept = [m for role, turn in turns.values() if (m := _workspace_message(role, turn, tally))]
    return Conversation(text_of(content.get("title")), merge_assistant(kept), said_on(content))


def _workspace_message(role: str, turn: dict[str, Any], tally: Tally) -> ChatMessage | None:
    if turn.get("turn_deleted_time"):
        tally.add("deleted messages left out")
        return None
    time = said_on(turn)
    if role == "user_turn":
        prompt = text_of(turn.get("prompt"))
        return ChatMessage("user", prompt, None, time) if prompt else None
    tally.add("thoughts of the assistant left out", len(objects_of(turn.get("model_thoughts"))))
    parts = []
    for part in objects_of(turn.get("text")):
        parts += [part.get("preamble"), part.get("data"), *(c.get("content") for c in objects_of(part.get("cards")))]
    pictures = turn.get("images")
    named = [placeholder("image", name) for name in pictures] if isinstance(pictures, list) else []
    text = "\n".join(filter(None, [*map(text_of, parts), *named]))
    return ChatMessage("assistant", text, None, time) if text else None
