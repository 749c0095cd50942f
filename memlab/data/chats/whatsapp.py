"""WhatsApp's "Export chat": a .txt with one line for each message, whose date takes the form of the phone.

Android writes ``DATE, TIME - Name: text``, iPhones ``[DATE, TIME] Name: text``. A message goes on in the lines that
follow it, up to the next date; on iPhones messages end in CR LF, and lines inside them in LF. What WhatsApp itself
writes has no name, or begins with a mark of direction (iPhones). Dates are local times; their form and the order of day
and month are those of the whole file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from memlab.data.chats import whatsapp_words
from memlab.data.chats.content import placeholder
from memlab.data.chats.conversation import ChatMessage, Conversation, Tally
from memlab.data.chats.source import ExportFile
from memlab.data.chats.whatsapp_dates import OTHER_CALENDARS, DateOrder, Stamp, begins_with_stamp, read_moments
from memlab.data.chats.whatsapp_words import plain
from memlab.support.errors import MemlabError

HEAD = 90
"""Characters at the beginning of a line that may hold a date; the longest of CLDR has some 60."""

_SPEAKER = re.compile(r"([^\n]{1,100}?):(?: |$)(.*)", re.DOTALL)
_MARKS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


class WhatsAppLine(NamedTuple):
    """A line that begins with a date; separator: what ends that, ``]`` on iPhones. raw: the line. text: the rest."""

    separator: str
    stamp: Stamp
    raw: str
    text: str


def split_line(raw: str) -> WhatsAppLine | None:
    """Return the parts of a line; None if it does not begin with a date.

    >>> line = split_line("[31/12/23, 9:15:04\\u202fPM] Ann: Hi")
    >>> line.stamp.time, line.stamp.period, line.text, line.separator
    (('9', '15', '04'), 'pm', 'Ann: Hi', ']')
    """
    head = raw[:HEAD]
    if (found := begins_with_stamp(plain(head))) is None:
        return None
    stamp, separator, end = found
    place = next(place for place in range(end, len(head) + 1) if len(plain(head[:place])) == end)
    return WhatsAppLine(separator, stamp, raw, raw[place:].removeprefix(" "))


def matches(file: ExportFile) -> bool:
    """Return whether one of the first lines begins with a date as phones write it."""
    lines = _lines(file.content[:5000])[:8] if isinstance(file.content, str) else []
    return any(map(split_line, lines))


def read(files: Sequence[ExportFile], tally: Tally, dates: DateOrder | None = None) -> list[Conversation]:
    """Return one chat for each file; raise MemlabError where no date can be read.

    dates: order of day and month; None takes it from the file, and says so.
    """
    return [_chat(file, tally, dates) for file in filter(matches, files)]


def _chat(file: ExportFile, tally: Tally, dates: DateOrder | None) -> Conversation:
    blocks = _blocks(file, tally)
    reading = read_moments([line.stamp for line, _ in blocks], dates)
    tally.remarks.append(f"{file.name}: dates are read as {reading.order.value}, {reading.reason}")
    dated: list[tuple[WhatsAppLine, datetime, list[str]]] = []
    for (line, rest), at in zip(blocks, reading.moments):
        if at:
            dated.append((line, at, [line.text, *rest]))
        elif dated:  # a line that only looks like a date
            dated[-1][2].extend([line.raw, *rest])
    if not dated:
        other = any(part.isdecimal() and int(part) in OTHER_CALENDARS for part in blocks[0][0].stamp.date)
        fix = "set the phone to the Gregorian calendar and export again" if other else "give --date-order"
        raise MemlabError(f"no date can be read as {reading.order.value}", where=file.name, fix=fix)
    messages = [m for line, at, body in dated if (m := _message(line, at, "\n".join(body).strip("\n"), tally))]
    return Conversation(_title(file), messages, endless=True, room=_title(file))


def _lines(text: str) -> list[str]:
    """Return the lines of a file; where most of what follows a CR LF is dated, a line feed alone ends no line."""
    records = text.split("\r\n")
    filled = [record for record in records[1:] if record.strip()]
    whole = 2 * sum(split_line(record) is not None for record in filled) > len(filled)
    return records if whole else text.replace("\r\n", "\n").split("\n")


def _blocks(file: ExportFile, tally: Tally) -> list[tuple[WhatsAppLine, list[str]]]:
    """Return each dated line with the lines that follow it; all in the layout that most have."""
    found = [(raw, split_line(raw)) for raw in _lines(file.content)]
    usual, _ = Counter((line.separator, line.stamp.skeleton) for _, line in found if line).most_common(1)[0]
    blocks: list[tuple[WhatsAppLine, list[str]]] = []
    for raw, line in found:
        if line and (line.separator, line.stamp.skeleton) == usual:
            blocks.append((line, []))
        elif blocks:
            blocks[-1][1].append(raw)
            tally.add("lines dated in another form, kept as text", line is not None)
    return blocks


def _message(line: WhatsAppLine, said_on: datetime, whole: str, tally: Tally) -> ChatMessage | None:
    """Return the message of some lines; None for notices, deleted and blank messages.

    On iPhones a mark stands before the text that the app writes, and before the whole line where that is an attachment.
    """
    match = _SPEAKER.match(whole)
    if not match or whatsapp_words.opens_a_quote(match[1]):
        _notice(whole, tally)
        return None
    speaker = " ".join(_MARKS.sub("", match[1]).replace("~", " ").split())
    text = match[2].strip()
    if (kept := whatsapp_words.drop_edit_mark(text)) is not None:
        tally.add("edited messages, taken as they are now")
        text = kept
    own = line.separator == "]" and text[:1] in whatsapp_words.MARKS and text != ""  # written by the app
    named = _MARKS.sub("", whatsapp_words.name_attachments(text)).strip()
    text = _MARKS.sub("", text).strip()
    kind = whatsapp_words.kind_of(text)
    if kind == "deleted":
        tally.add("deleted messages left out")
        return None
    if kind == "call" or (own and named == text and "https://" not in text):
        if kind == "call" or line.raw[:1] not in whatsapp_words.MARKS or whatsapp_words.is_notice(text):
            _notice(text, tally)
            return None
        named = placeholder("media")
    tally.add("messages without text left out", not named)
    return ChatMessage("assistant" if speaker == "Meta AI" else "user", named, speaker, said_on) if named else None


def _notice(text: str, tally: Tally) -> None:
    """Count a line that the app wrote."""
    tally.add("notices left out (encryption, joins, subjects)" if whatsapp_words.is_notice(text) else
              "system lines that memlab does not know left out", bool(text))


def _title(file: ExportFile) -> str:
    """Return the other side's name, as the file's name has it."""
    for text in (plain("" if file.stem == "_chat" else file.stem), plain(file.folder)):
        title = next((title for title in whatsapp_words.words().titles if text.startswith(title)), "")
        if name := text[len(title):].strip():
            return name
    return "WhatsApp chat"
