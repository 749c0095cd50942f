"""People, channels and groups of a Slack workspace by their ids, and Slack's mark-up with names in place of ids.

The mark-up is that of Slack's page "Formatting message text": ``<@U1>``, ``<#C1|name>``, ``<!here>``,
``<!subteam^S1|@group>``, ``<!date^1392734382^{date}|18 February>``, ``<https://x.org|label>``, and ``&amp;`` for ``&``.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from memlab.data.chats.source import ExportFile
from memlab.data.chats.values import first_text, objects_of, text_of

_OWN_NAMES = ("display_name", "real_name")
_MARK = re.compile(r"<([^<>|]+)(?:\|([^<>]*))?>")


class People:
    """People by their ids, from users.json and from the profiles that messages carry.

    unknown: ids that messages mention and users.json does not name.
    """

    def __init__(self, files: Sequence[ExportFile]) -> None:
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
