"""Texts of Slack's blocks, attachments and files: what people typed, bots' cards, forwarded messages, link previews.

Blocks and their elements are those of Slack's Block Kit reference (docs.slack.dev/reference/block-kit) and of
``@slack/types``; attachments those of its reference of secondary attachments, with ``is_share`` and ``message_blocks``
for forwarded messages as ``conversations.history`` returns them. A kind that is not known gives the texts that it
holds; buttons, menus and blocks without a text are counted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from memlab.data.chats.content import attachment, placeholder
from memlab.data.chats.conversation import Tally
from memlab.data.chats.slack_people import People, link, literal, moment
from memlab.data.chats.values import first_text, object_of, objects_of, text_of

_TEXTS = {"plain_text", "mrkdwn", "markdown", "raw_text", "raw_number"}
_MENTIONS = {"user": "user_id", "channel": "channel_id", "usergroup": "usergroup_id", "team": "team_id",
             "broadcast": "range"}
_CONTROL = re.compile(r"(?:\w+_)?(?:button|buttons|select|checkboxes|overflow)|\w+_input|\w*picker")
_ORDER = ("title", "name", "rich_text_title", "subtitle", "label", "caption", "text", "body", "description",
          "details", "output", "hint", "fields", "elements", "child_blocks", "blocks", "tasks", "chart")
_APART = {"confirm", "options", "option_groups", "placeholder", "style"}
_EMPTY = {"", "actions", "context_actions", "divider"}
_WORD = re.compile(r"[^\W_]+")


def same(text: str, lines: Sequence[str]) -> str:
    """Return a message of which a text and the lines of blocks are two forms: all that stands in either, once.

    >>> same("Build 7 failed", ["Build 7 failed", "on main"]), same("*Build 7* failed on main", ["Build 7 failed"])
    ('Build 7 failed\\non main', '*Build 7* failed on main')
    """
    words, whole = _words(text), _words("\n".join(lines))
    return "\n".join(lines) if words and words != whole and words in whole else with_lines(text, lines)


def with_lines(text: str, lines: Sequence[str]) -> str:
    """Return a text, and after it those lines that it does not hold, however they are marked up.

    >>> with_lines("I agree", ["Rita: We launch in May", "I _agree_"])
    'I agree\\nRita: We launch in May'
    """
    words, held = _words(text), {_words(line) or line.strip() for line in text.split("\n")}
    new = []
    for line in lines:
        key = _words(line)
        if (key or line.strip()) not in held and (key not in words if key else line.strip() not in text):
            new.append(line)
    return "\n".join([text, *new] if text else new)


def _words(text: str) -> str:
    """Return the words of a text with a blank at both ends of each; "" if there are none."""
    words = " ".join(_WORD.findall(text.casefold()))
    return f" {words} " if words else ""


class Cards:
    """Blocks and attachments as lines of text."""

    def __init__(self, people: People, tally: Tally) -> None:
        self._people, self._tally = people, tally

    def blocks(self, value: object) -> list[str]:
        """Return the lines of a list of blocks, of one block, or of the text that stands for one."""
        if isinstance(value, list):
            return [line for block in value for line in self.blocks(block)]
        if isinstance(value, str):
            return _lines(self._people.plain(value))
        return self._block(value) if isinstance(value, dict) else []

    def attachments(self, value: object) -> list[str]:
        """Return the lines of a list of attachments."""
        return [line for holder in objects_of(value) for line in self._attachment(holder)]

    def _block(self, block: dict[str, Any]) -> list[str]:
        kind = text_of(block.get("type"))
        if _CONTROL.fullmatch(kind):
            self._tally.add("buttons and menus of cards left out")
            return []
        if kind in _TEXTS:
            text = block.get("text")
            return _lines(self._people.plain(text) if kind == "mrkdwn" else literal(text_of(text)))
        if kind.startswith("rich_text"):
            lines = self._rich(block)
        elif kind in ("table", "data_table"):
            lines = [*self.blocks(block.get("caption")), *self._rows(block.get("rows"))]
        elif kind in ("image", "video", "file"):
            lines = self._names(kind, block)
        else:
            lines = self._parts(block)
        self._tally.add("blocks without a text left out", not lines and kind not in _EMPTY, kind=kind)
        return lines

    def _parts(self, block: dict[str, Any]) -> list[str]:
        """Return the texts of a block: of its known fields in their order, then of blocks in other fields."""
        lines = [line for key in _ORDER if key in block for line in self.blocks(block[key])]
        if "value" in block and isinstance(block["value"], int | float | str) and len(lines) == 1:
            return [f"{lines[0]}: {block['value']}"]  # a point of a chart
        if address := text_of(block.get("url")):
            return [link(address, " ".join(lines))]
        return lines + [line for key, value in block.items() if key not in _ORDER and key not in _APART
                        and isinstance(value, dict | list) for line in self.blocks(_objects(value))]

    def _names(self, kind: str, block: dict[str, Any]) -> list[str]:
        if kind == "file" and object_of(block.get("file")):
            return _lines(file_text(object_of(block.get("file"))))
        names = [*self.blocks(block.get("title")), *self.blocks(block.get("alt_text"))]
        return [placeholder(kind, ", ".join(dict.fromkeys(names))), *self.blocks(block.get("description"))]

    def _rows(self, rows: object) -> list[str]:
        cells = [[" ".join(self.blocks(cell)) for cell in row] for row in rows if isinstance(row, list)] \
            if isinstance(rows, list) else []
        return [line for row in cells if (line := " | ".join(row)).strip(" |")]

    def _rich(self, block: dict[str, Any]) -> list[str]:
        """Return the lines of a rich text, or of one of its parts."""
        kind, elements = text_of(block.get("type")), objects_of(block.get("elements"))
        if kind == "rich_text":
            return [line for element in elements for line in self._rich(element)]
        if kind == "rich_text_list":
            return [f"• {' '.join(lines)}" for element in elements if (lines := self._rich(element))]
        lines = _lines("".join(map(self._element, elements)))
        return [f"> {line}" for line in lines] if kind == "rich_text_quote" else lines

    def _element(self, element: dict[str, Any]) -> str:
        kind = text_of(element.get("type"))
        if kind == "text" and isinstance(element.get("text"), str):
            return literal(element["text"])  # with the blanks at its ends
        if kind == "link":
            return link(text_of(element.get("url")), literal(text_of(element.get("text"))))
        if kind == "emoji":
            return f":{text_of(element.get('name'))}:"
        if kind in _MENTIONS:
            return self._people.mention(kind, text_of(element.get(_MENTIONS[kind])))
        if kind == "date":
            return literal(text_of(element.get("fallback"))) or moment(element.get("timestamp"))
        if kind.startswith("rich_text"):
            return "\n".join(self._rich(element)) + "\n"
        text = literal(first_text(element, "text", "title", "name", "value", "fallback", "url"))
        self._tally.add("blocks without a text left out", not text, kind=kind)
        return text

    def _attachment(self, holder: dict[str, Any]) -> list[str]:
        """Return the lines of an attachment: a card, a preview of a link, or a message that is forwarded."""
        people = self._people
        author = people.name(text_of(holder.get("author_id")),
                             literal(first_text(holder, "author_name", "author_subname")) or " ").strip()
        title, address = people.plain(holder.get("title")), text_of(holder.get("title_link"))
        is_preview = first_text(holder, "from_url", "original_url")
        lines = [title if is_preview or not title else link(address, title), people.plain(holder.get("text"))]
        for field in objects_of(holder.get("fields")):
            pair = (people.plain(field.get("title")), people.plain(field.get("value")))
            lines.append(": ".join(filter(None, pair)))
        body = "\n".join(filter(None, lines))
        body = with_lines(body, [*self.blocks(holder.get("blocks")), *self.blocks(holder.get("preview"))])
        body = with_lines(body, [line for entry in objects_of(holder.get("message_blocks"))
                            for line in self._forwarded_texts(object_of(entry.get("message")))])
        rest = [file_text(file) for file in objects_of(holder.get("files"))]
        rest += [placeholder("image")] * bool(text_of(holder.get("image_url")))
        self._tally.add("buttons and menus of cards left out", len(objects_of(holder.get("actions"))))
        shown = [people.plain(holder.get("pretext")), f"{author}: {body}" if author and body else author or body, *rest]
        fallback = people.plain(holder.get("fallback"))
        if not any(shown) and fallback != "[no preview available]":
            shown = [fallback]
        return _lines("\n".join([*shown, people.plain(holder.get("footer"))]))

    def _forwarded_texts(self, message: dict[str, Any]) -> list[str]:
        return [*_lines(same(self._people.plain(message.get("text")), self.blocks(message.get("blocks")))),
                *self.attachments(message.get("attachments")), *map(file_text, objects_of(message.get("files")))]


def file_text(file: dict[str, Any]) -> str:
    """Name a file; what Slack heard in a voice message stands after its name.

    >>> file_text({"title": "Plan", "filetype": "quip"}), file_text({"name": "a.png", "mimetype": "image/png"})
    ('[file: Plan]', '[image: a.png]')
    """
    if file.get("mode") in ("tombstone", "hidden_by_limit"):
        return placeholder("file")
    named = attachment(file.get("name") or file.get("title"), file.get("mimetype"))
    return "\n".join(filter(None, [named, literal(first_text(file, "transcription.preview.content"))]))


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.split("\n") if line.strip()]


def _objects(value: dict[str, Any] | list[Any]) -> list[Any]:
    """Return the objects among a value's entries; a text there may be an id or a setting."""
    return [value] if isinstance(value, dict) else [entry for entry in value if isinstance(entry, dict | list)]
