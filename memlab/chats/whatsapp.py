"""WhatsApp's "Export chat": a .txt with one line for each message, whose date takes the form of the phone.

A message goes on in the lines that follow it, up to the next date. What WhatsApp itself writes has no speaker, or
begins with a left-to-right mark (iOS). Dates are local times; the order of day and month is that of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from itertools import pairwise
from typing import ClassVar, NamedTuple

from memlab.chats.conversation import ChatMessage, Conversation, Tally, placeholder
from memlab.chats.source import ExportFile
from memlab.errors import MemlabError

_LINE = re.compile(
    r"[\u200e\u200f\u202a\ufeff]*(?P<bracket>\[)?"
    r"([0-9]{1,4})(?P<separator>[./-])([0-9]{1,2})(?P=separator)([0-9]{1,4})(?:,|\sklo)?\s+"
    r"(?P<hour>[0-9]{1,2})[:.](?P<minute>[0-9]{2})(?:[:.](?P<second>[0-9]{2}))?"
    r"(?:\s?(?P<half>[AaPp])\.?\s?[Mm]\.?)?(?(bracket)\]\s?|\s-\s)(?P<text>.*)", re.DOTALL)


class DateOrder(Enum):
    """Order of the numbers of a date; the values are what the user reads."""

    DAY_FIRST = "day/month/year"
    MONTH_FIRST = "month/day/year"
    YEAR_FIRST = "year/month/day"


class WhatsAppLine(NamedTuple):
    """A line that begins with a date.

    numbers: the three numbers of the date as they stand. time: hour, minute, second. half: "a", "p", or "" for 24
    hours. raw: the whole line. text: the line after its date.
    """

    numbers: tuple[str, str, str]
    separator: str
    time: tuple[int, int, int]
    half: str
    bracketed: bool
    raw: str
    text: str


def split_line(raw: str) -> WhatsAppLine | None:
    """Return the parts of a line; None if it does not begin with a date.

    >>> split_line("[31/12/23, 9:15:04 PM] Ann: Hi").time, split_line("31.12.2023, 21:15 - Ann: Hi").text
    ((9, 15, 4), 'Ann: Hi')
    """
    match = _LINE.fullmatch(raw)
    if not match:
        return None
    time = int(match["hour"]), int(match["minute"]), int(match["second"] or 0)
    return WhatsAppLine((match[2], match[4], match[5]), match["separator"], time, (match["half"] or "").lower(),
                        match["bracket"] is not None, raw, match["text"])


def moment(line: WhatsAppLine, order: DateOrder) -> datetime | None:
    """Return the moment of a line read in an order; None if there is no such day or time."""
    first, second, third = map(int, line.numbers)
    year, month, day = {DateOrder.DAY_FIRST: (third, second, first), DateOrder.MONTH_FIRST: (third, first, second),
                        DateOrder.YEAR_FIRST: (first, second, third)}[order]
    hour, minute, seconds = line.time
    if line.half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if line.half == "p" else 0)
    try:
        return datetime(year + 2000 if year < 100 else year, month, day, hour, minute, seconds)
    except ValueError:
        return None


def date_order(lines: Iterable[WhatsAppLine]) -> tuple[DateOrder, str]:
    """Return the order of a file's dates, and the reason in words.

    Impossible days decide (there is no month 13), then the order of time (messages are sorted), then the style: with
    am and pm month/day is assumed, else day/month.
    """
    listed = list(lines)
    if all(len(line.numbers[0]) == 4 for line in listed):
        return DateOrder.YEAR_FIRST, "since the year stands first"
    orders = (DateOrder.DAY_FIRST, DateOrder.MONTH_FIRST)
    moments = {order: [moment(line, order) for line in listed] for order in orders}
    impossible = {order: moments[order].count(None) for order in orders}
    best = min(orders, key=lambda order: impossible[order])
    if len(set(impossible.values())) > 1:
        return best, "since the other order gives days that do not exist"
    steps_back = {order: sum(b < a for a, b in pairwise(m for m in moments[order] if m)) for order in orders}
    best = min(orders, key=lambda order: steps_back[order])
    if len(set(steps_back.values())) > 1:
        return best, "since the other order would put messages before earlier ones"
    american = any(line.half for line in listed) and listed[0].separator == "/"
    return (orders[american], "assumed from the style, since the file allows both orders; --dates changes it")


_MARKS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_SPEAKER = re.compile(r"([^:\n]{1,100}):(?: |$)(.*)", re.DOTALL)
_NOTICE = re.compile(r"\b(changed the (subject|group)|changed this group's|created (the )?group|turned (on|off) )")
_DELETED = re.compile(r"(This message was deleted|You deleted this message)( by admin .*)?\.?")
_EDITED = "<This message was edited>"
_ATTACHED = re.compile(r"<attached: ([^>\n]{1,300})>|^([^\n]+\.\w{2,5}) \(file attached\)", re.MULTILINE)
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
        return placeholder("media")
    if omitted := _OMITTED.fullmatch(text):
        kinds = {"document": "file", "Contact card": "contact"}
        return placeholder(kinds.get(omitted["kind"], omitted["kind"].lower()), omitted["file"] or "")
    return _ATTACHED.sub(lambda match: _file(match[1] or match[2]), text)


def _file(name: str) -> str:
    ending = name.rsplit(".", 1)[-1].lower()
    return placeholder(next((kind for kind, endings in _KINDS.items() if ending in endings.split()), "file"), name)


def _title(file: ExportFile) -> str:
    """Return the other side's name, as the file's name has it."""
    name = re.sub(r"^(WhatsApp Chat (with|-) ?|_chat$)", "", file.stem).strip()
    return name or re.sub(r"^WhatsApp Chat (with|-) ?", "", file.folder) or "WhatsApp chat"
