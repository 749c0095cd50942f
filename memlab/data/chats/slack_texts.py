"""Texts of Slack: names in place of ids, mark-up, blocks, bots' cards, forwarded messages, previews of links, files.

The mark-up is that of Slack's page "Formatting message text": ``<@U1>``, ``<#C1|name>``, ``<!here>``,
``<!subteam^S1|@group>``, ``<!date^1392734382^{date}|18 February>``, ``<https://x.org|label>``, and ``&amp;`` for ``&``.
Blocks and their elements are those of Slack's Block Kit reference (docs.slack.dev/reference/block-kit) and of
``@slack/types``; attachments those of its reference of secondary attachments, with ``is_share`` and ``message_blocks``
for forwarded messages as ``conversations.history`` returns them. A kind that is not known gives the texts that it
holds; buttons, menus and blocks without a text are counted.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from memlab.data.chats.content import attachment, first_text, object_of, objects_of, placeholder, text_of
from memlab.data.chats.conversation import Tally
from memlab.data.chats.source import ExportFile

_OWN_NAMES = ("display_name", "real_name")
_MARK = re.compile(r"<([^<>|]+)(?:\|([^<>]*))?>")
_TEXTS = {"plain_text", "mrkdwn", "markdown", "raw_text", "raw_number"}
_MENTIONS = {"user": "user_id", "channel": "channel_id", "usergroup": "usergroup_id", "team": "team_id",
             "broadcast": "range"}
_CONTROL = re.compile(r"(?:\w+_)?(?:button|buttons|select|checkboxes|overflow)|\w+_input|\w*picker")
_SHOWN = {"title", "name", "rich_text_title", "subtitle", "label", "caption", "text", "body", "description", "details",
          "output", "hint"}
_APART = {"confirm", "options", "option_groups", "placeholder", "style"}
_EMPTY = {"", "actions", "context_actions", "divider"}
_WORD = re.compile(r"[^\W_]+")


class People:
    """People by their ids, from users.json and from the profiles that messages carry, and texts with their names.

    unknown: ids that messages mention and users.json does not name.
    """

    def __init__(self, files: Sequence[ExportFile], tally: Tally) -> None:
        self._tally = tally
        self._users = {text_of(user.get("id")): user for file in files if file.stem in ("users", "org_users")
                       for user in objects_of(file.content)}
        display = {key: first_text(user, *(f"profile.{n}" for n in _OWN_NAMES), "real_name", "name", "id")
                   for key, user in self._users.items()}
        shared = Counter(display.values())
        self._names = {key: name if shared[name] == 1 else f"{name} ({text_of(self._users[key].get('name')) or key})"
                       for key, name in display.items()}
        self._channels = {text_of(entry.get("id")): entry for file in files
                          if file.stem in ("channels", "groups", "dms", "mpims") for entry in objects_of(file.content)}
        self._labels: dict[str, str] = {}  # of groups and channels, by id, as the texts read so far state them
        self.unknown: set[str] = set()

    def name(self, key: str, otherwise: str = "") -> str:
        """Return a person's name; where users.json does not name the id, ``otherwise`` or the id."""
        if key not in self._names and not otherwise:
            self.unknown.add(key)
        return self._names.get(key, otherwise or key)

    def channel(self, folder: str) -> str:
        """Return a channel's name: its folder's, or for direct messages the members'."""
        entry = self._channels.get(folder, {})
        members = entry.get("members")
        if not text_of(entry.get("name")) and isinstance(members, list) and members:
            return ", ".join(self.name(m) for m in members if isinstance(m, str))
        return text_of(entry.get("name")) or folder

    def speaker(self, message: dict[str, Any]) -> tuple[str | None, bool]:
        """Return who wrote a message, and whether it is a bot."""
        key = first_text(message, "user", "comment.user")
        user = self._users.get(key, {})
        bot = bool(message.get("subtype") in ("bot_message", "slackbot_response") or user.get("is_bot") is True
                   or key == "USLACKBOT" or message.get("bot_id") and not (user or key))
        if bot:
            name = first_text(message, "username", "bot_profile.name")
            return name or (self.name(key) if key else text_of(message.get("bot_id"))) or None, True
        if key and key not in self._names and (name := first_text(message, *(f"user_profile.{n}" for n in _OWN_NAMES))):
            self._names[key] = name
        return (self.name(key) if key else text_of(message.get("username"))) or None, False

    def plain(self, value: object) -> str:
        """Return a marked-up text with names in the place of ids, links as they read, and no HTML entities."""
        return literal(_MARK.sub(self._mark, text_of(value))).strip()

    def mention(self, kind: str, key: str) -> str:
        """Return a mention: of a user, a channel, a user group, or all (``broadcast``)."""
        if kind == "user":
            return f"@{self.name(key, self._labels.get(key, ''))}"
        if kind == "channel":
            return f"#{text_of(self._channels.get(key, {}).get('name')) or self._labels.get(key, key)}"
        return f"@{self._labels.get(key, key)}"

    def _mark(self, match: re.Match[str]) -> str:
        target, label = match[1], match[2] or ""
        if target[0] not in "@#!":
            return link(target, label)
        kind, *values = target[1:].split("^")
        if kind == "date" and label:
            return label
        key = values[0] if values else kind
        if label:
            self._labels[key] = label.lstrip("@#")
        return self.mention({"@": "user", "#": "channel"}.get(target[0], "broadcast"), key)

    def blocks(self, value: object) -> list[str]:
        """Return the lines of a block, or of a list of them."""
        if isinstance(value, list):
            return [line for block in value for line in self.blocks(block)]
        if not isinstance(value, dict):
            return []
        kind, text = text_of(value.get("type")), value.get("text")
        if _CONTROL.fullmatch(kind):
            self._tally.add("buttons and menus of cards left out")
            return []
        if kind in _TEXTS:
            return _lines(self.plain(text) if kind == "mrkdwn" else literal(text_of(text)))
        if kind.startswith("rich_text"):
            lines = _lines(self._rich(value))
        elif kind in ("image", "video"):
            names = [*self.blocks(value.get("title")), literal(text_of(value.get("alt_text")))]
            lines = [placeholder(kind, ", ".join(dict.fromkeys(filter(None, names)))),
                     *self.blocks(value.get("description"))]
        elif kind == "file":
            lines = _lines(file_text(object_of(value.get("file")) or value))
        else:
            lines = [line for key, inner in value.items() for line in self._field(key, inner)]
        self._tally.add("blocks without a text left out", not lines and kind not in _EMPTY, kind=kind)
        return lines

    def _field(self, key: str, value: object) -> list[str]:
        """Return the lines of a field of a block; a row of a table is one."""
        if isinstance(value, str):
            return _lines(self.plain(value)) if key in _SHOWN else []
        if key == "rows" and isinstance(value, list):
            rows = (" | ".join(" ".join(self.blocks(cell)) for cell in row) for row in value if isinstance(row, list))
            return [row for row in rows if row.strip(" |")] or [line for row in value for line in self.blocks(row)]
        return [] if key in _APART else self.blocks(value)

    def attachments(self, value: object) -> list[str]:
        """Return the lines of a list of attachments."""
        return [line for holder in objects_of(value) for line in self._attachment(holder)]

    def _rich(self, part: dict[str, Any]) -> str:
        """Return the text of a rich text, of one of its parts, or of an element of these."""
        kind, text = text_of(part.get("type")), part.get("text")
        if kind.startswith("rich_text"):
            inner = list(map(self._rich, objects_of(part.get("elements"))))
            if kind == "rich_text_list":
                return "".join(f"• {entry}" for entry in inner)
            return "".join(inner) + "\n" * (kind != "rich_text")
        if kind == "text" and isinstance(text, str):
            return literal(text)  # with the blanks at its ends
        if kind == "link":
            return link(text_of(part.get("url")), literal(text_of(text)))
        if kind in _MENTIONS:
            return self.mention(kind, text_of(part.get(_MENTIONS[kind])))
        name = first_text(part, "text", "title", "name", "value", "fallback", "url")
        self._tally.add("blocks without a text left out", not name, kind=kind)
        return f":{name}:" if kind == "emoji" else literal(name)

    def _attachment(self, holder: dict[str, Any]) -> list[str]:
        """Return the lines of an attachment: a card, a preview of a link, or a message that is forwarded."""
        author = self.name(text_of(holder.get("author_id")),
                             literal(first_text(holder, "author_name", "author_subname")) or " ").strip()
        lines = [self.plain(holder.get("title")), self.plain(holder.get("text"))]
        lines += [": ".join(filter(None, map(self.plain, (field.get("title"), field.get("value")))))
                  for field in objects_of(holder.get("fields"))]
        body = with_lines("\n".join(filter(None, lines)), self.blocks([holder.get("blocks"), holder.get("preview")]))
        for message in (object_of(entry.get("message")) for entry in objects_of(holder.get("message_blocks"))):
            forwarded = same(self.plain(message.get("text")), self.blocks(message.get("blocks")))
            body = with_lines(body, [*_lines(forwarded), *self.attachments(message.get("attachments")),
                                     *map(file_text, objects_of(message.get("files")))])
        self._tally.add("buttons and menus of cards left out", len(objects_of(holder.get("actions"))))
        shown = [self.plain(holder.get("pretext")), f"{author}: {body}" if author and body else author or body,
                 *map(file_text, objects_of(holder.get("files"))), "[image]" if holder.get("image_url") else ""]
        fallback = self.plain(holder.get("fallback"))
        if not any(shown) and fallback != "[no preview available]":
            shown = [fallback]
        return _lines("\n".join([*shown, self.plain(holder.get("footer"))]))


def literal(text: str) -> str:
    """Return a text without HTML entities."""
    with suppress(ValueError):  # of an entity whose number has thousands of digits
        return html.unescape(text)
    return text


def link(address: str, label: str = "") -> str:
    """Return a link as it reads.

    >>> link("https://x.org", "the plan"), link("mailto:a@x.org", "a@x.org"), link("https://x.org")
    ('the plan (https://x.org)', 'a@x.org', 'https://x.org')
    """
    plain = address.removeprefix("mailto:")
    return plain if not label or label == plain else f"{label} ({plain})" if plain else label


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
