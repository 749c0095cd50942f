"""WhatsApp's "Export chat": a .txt with one line for each message, whose date takes the form of the phone.

A message goes on in the lines that follow it, up to the next date. What WhatsApp itself writes has no speaker, or
begins with a left-to-right mark (iOS). Dates are local times.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from memlab.chats.content import named
from memlab.chats.conversation import ChatMessage, Conversation, Tally
from memlab.chats.source import ExportFile
from memlab.chats.whatsapp_dates import DateOrder, WhatsAppLine, date_order, moment, split_line
from memlab.errors import MemlabError

_MARKS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_SPEAKER = re.compile(r"([^:\n]{1,100}):(?: |$)(.*)", re.DOTALL)
_NOTICE = re.compile(r"\b(changed the (subject|group)|changed this group's|created (the )?group|turned (on|off) )")
_DELETED = re.compile(r"(This message was deleted|You deleted this message)( by admin .*)?\.?")
_EDITED = "<This message was edited>"
_ATTACHED = re.compile(r"<attached: ([^>\n]+)>|^([^\n]+\.\w{2,5}) \(file attached\)", re.MULTILINE)
_OMITTED = re.compile(
    r"(?:(?P<file>[^\n]{1,300}\.\w{2,5})(?: • [^\n]{0,100}?)? )?"
    r"(?P<kind>image|video|audio|sticker|GIF|document|Contact card) omitted")
_KINDS = {"image": "jpg jpeg png webp heic gif", "video": "mp4 mov 3gp", "audio": "opus m4a mp3 ogg aac amr"}


@dataclass(frozen=True)
class WhatsApp:
    """One conversation for each file, cut by days.

    dates: order of day and month; auto takes it from the file, and says so.
    """

    dates: DateOrder | None = None

    name: ClassVar = "whatsapp"
    title: ClassVar = "WhatsApp export"

    def matches(self, file: ExportFile) -> bool:
        """Return whether one of the first lines begins with a date as WhatsApp writes it."""
        text = file.content if isinstance(file.content, str) else ""
        return any(split_line(line) for line in _lines(text[:5000])[:8])

    def read(self, files: Sequence[ExportFile], tally: Tally) -> list[Conversation]:
        """Return the chats; raise MemlabError where no date can be read."""
        return [self._chat(file, tally) for file in filter(self.matches, files)]

    def _chat(self, file: ExportFile, tally: Tally) -> Conversation:
        blocks = _blocks(file.content)
        order, reason = (self.dates, "as given") if self.dates else date_order(line for line, _ in blocks)
        tally.remarks.append(f"{file.name}: dates are read as {order.value}, {reason}")
        messages: list[ChatMessage] = []
        body: list[str] = []  # of the open message
        said_on: datetime | None = None
        for line, rest in blocks:
            at = moment(line, order)
            if at is None:  # a line that only looks like a date
                body += [line.raw, *rest]
                continue
            messages += _message(body, said_on, tally)
            said_on, body = at, [line.text, *rest]
        messages += _message(body, said_on, tally)
        if said_on is None:
            raise MemlabError(f"no date can be read as {order.value}", where=file.name, fix="give --dates")
        return Conversation(_title(file), messages, endless=True)


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")


def _blocks(text: str) -> list[tuple[WhatsAppLine, list[str]]]:
    """Return each dated line with the lines that follow it; all in the style of the first, bracketed or not."""
    blocks: list[tuple[WhatsAppLine, list[str]]] = []
    for raw in _lines(text):
        line = split_line(raw)
        if line and (not blocks or line.bracketed == blocks[0][0].bracketed):
            blocks.append((line, []))
        elif blocks:
            blocks[-1][1].append(raw)
    return blocks


def _message(body: list[str], said_on: datetime | None, tally: Tally) -> list[ChatMessage]:
    """Return the message of some lines; nothing for notices, deleted and blank messages."""
    match = _SPEAKER.match("\n".join(body).strip("\n"))
    if said_on is None or not match or _NOTICE.search(match[1]):
        tally.add("notices left out (encryption, joins, subjects)", said_on is not None and bool(body))
        return []
    speaker = " ".join(_MARKS.sub("", match[1]).replace("~", " ").split())
    marked = match[2].startswith("\u200e")
    text = _MARKS.sub("", match[2]).strip()
    if _EDITED in text:
        tally.add("edited messages, taken as they are now")
        text = text.replace(_EDITED, "").strip()
    if _DELETED.fullmatch(text):
        tally.add("deleted messages left out")
        return []
    plain = _name_attachments(text)
    if marked and plain == text:
        tally.add("notices left out (encryption, joins, subjects)")
        return []
    tally.add("messages without text left out", not plain)
    role = "assistant" if speaker == "Meta AI" else "user"
    return [ChatMessage("assistant" if role == "assistant" else "user", plain, speaker, said_on)] if plain else []


def _name_attachments(text: str) -> str:
    """Name attachments in one form.

    >>> _name_attachments("IMG-1.jpg (file attached)\\nThe lake!"), _name_attachments("<Media omitted>")
    ('[image: IMG-1.jpg]\\nThe lake!', '[media]')
    >>> _name_attachments("plan.pdf • 3 pages document omitted"), _name_attachments("image omitted")
    ('[file: plan.pdf]', '[image]')
    """
    if text == "<Media omitted>":
        return named("media")
    if omitted := _OMITTED.fullmatch(text):
        kinds = {"document": "file", "Contact card": "contact"}
        return named(kinds.get(omitted["kind"], omitted["kind"].lower()), omitted["file"] or "")
    return _ATTACHED.sub(lambda match: _file(match[1] or match[2]), text)


def _file(name: str) -> str:
    ending = name.rsplit(".", 1)[-1].lower()
    return named(next((kind for kind, endings in _KINDS.items() if ending in endings.split()), "file"), name)


def _title(file: ExportFile) -> str:
    """Return the other side's name, as the file's name has it."""
    name = re.sub(r"^(WhatsApp Chat (with|-) ?|_chat$)", "", file.stem).strip()
    return name or re.sub(r"^WhatsApp Chat (with|-) ?", "", file.folder) or "WhatsApp chat"
