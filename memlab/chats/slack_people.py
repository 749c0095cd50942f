"""Names of people and channels in a Slack export, and its marked-up text made plain."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from memlab.chats.conversation import object_of, objects_of, text_of
from memlab.chats.source import ExportFile

_MARK = re.compile(r"<([^<>|]+)(?:\|([^<>]*))?>")


class People:
    """People by their ids, from users.json and from the profiles that messages carry.

    unknown: ids that messages mention and users.json does not name.
    """

    def __init__(self, files: Sequence[ExportFile]) -> None:
        self._users = {text_of(user.get("id")): user for file in files if file.stem in ("users", "org_users")
                       for user in objects_of(file.content)}
        display = {key: _name(user) for key, user in self._users.items()}
        shared = Counter(display.values())
        self._names = {key: name if shared[name] == 1 else f"{name} ({text_of(self._users[key].get('name')) or key})"
                       for key, name in display.items()}
        self._channels = {text_of(entry.get("id")): entry for file in files
                          if file.stem in ("channels", "groups", "dms", "mpims") for entry in objects_of(file.content)}
        self._spoke: set[str] = set()
        self.unknown: set[str] = set()

    def name(self, key: str) -> str:
        """Return a person's name; the id where users.json does not name it."""
        if key not in self._names:
            self.unknown.add(key)
        return self._names.get(key, key)

    def channel(self, folder: str) -> str:
        """Return a channel's name: its folder's, or for direct messages the members'."""
        entry = self._channels.get(folder, {})
        members = entry.get("members")
        if not text_of(entry.get("name")) and isinstance(members, list) and members:
            return ", ".join(self.name(m) for m in members if isinstance(m, str))
        return text_of(entry.get("name")) or folder

    def speaker(self, message: dict[str, Any]) -> tuple[str | None, bool]:
        """Return who wrote a message, and whether it is a bot."""
        key = text_of(message.get("user"))
        self._spoke.add(key)
        user = self._users.get(key, {})
        bot = bool(message.get("subtype") == "bot_message" or user.get("is_bot") is True or key == "USLACKBOT"
                   or message.get("bot_id") and not (user or key))
        if bot:
            profile = object_of(message.get("bot_profile"))
            name = text_of(message.get("username")) or text_of(profile.get("name"))
            return name or (self.name(key) if key else text_of(message.get("bot_id"))) or None, True
        profile = object_of(message.get("user_profile"))
        if key and key not in self._names and (name := _name({"profile": profile})):
            self._names[key] = name
        return (self.name(key) if key else text_of(message.get("username"))) or None, False

    def left(self) -> int:
        """Count the people who wrote something and are marked as deleted."""
        return sum(self._users.get(key, {}).get("deleted") is True for key in self._spoke)

    def plain(self, text: str) -> str:
        """Return a text with names in the place of ids, links as they read, and no HTML entities."""
        return html.unescape(_MARK.sub(self._mark, text)).strip()

    def _mark(self, match: re.Match[str]) -> str:
        target, label = match[1], match[2] or ""
        if target.startswith("@"):
            return f"@{self.name(target[1:]) if target[1:] in self._names or not label else label}"
        if target.startswith("#"):
            return f"#{label or text_of(self._channels.get(target[1:], {}).get('name')) or target[1:]}"
        if target.startswith("!"):
            return label or "@" + target[1:].split("^")[0]
        plain = target.removeprefix("mailto:")
        return plain if not label or label == plain else f"{label} ({plain})"


def _name(user: dict[str, Any]) -> str:
    profile = object_of(user.get("profile"))
    return next((name for holder, key in ((profile, "display_name"), (profile, "real_name"), (user, "real_name"),
                                          (user, "name"), (user, "id")) if (name := text_of(holder.get(key)))), "")
