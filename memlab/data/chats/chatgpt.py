"""Messages of ChatGPT's export: kinds of content, pictures, what is hidden, and the marks of its page in texts.

The structure is not documented by OpenAI; it is read as public exports of 2023 to 2026 show it. A mark stands for a
citation, an entity, a link, pictures, products or another card: ``U+E200 kind U+E202 field U+E202 field ... U+E201``,
where a field is a text, an address, JSON, or the name of a result such as ``turn0search1``. U+E203 and U+E204 enclose
the text that a citation belongs to. OpenAI's guide "Citation formatting" documents the form; the kinds are those of
public exports (entity, url, video, navlist, image_group, products, product_entity, map, finance, genui, ...). Older
exports write citations as ``【4†source】`` or ``:contentReference[oaicite:0]{index=0}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from memlab.data.chats.content import attachment, first_text, flatten, object_of, objects_of, placeholder, text_of
from memlab.data.chats.conversation import ChatMessage, Tally
from memlab.data.chats.times import said_on
from memlab.support.foreign import load_json

_SPOKEN = {"text", "multimodal_text", "code"}
_MARK = re.compile(
    "( ?)(?:\ue200([a-z_]++)([^\ue200\ue201]*+)\ue201"
    "|\ue200[a-z_]*+(?:\ue202(?:turn[0-9a-z]++)?)*+"  # one that does not end
    "|\u3010\\d+(?::\\d+)?\u2020[^\u3010\u3011]*+\u3011|:contentReference\\[oaicite:\\d+\\]\\{index=\\d+\\})")
_STRAY = re.compile("[\ue200-\ue20f]")
_RESULT = re.compile(r"(?:turn\d+[a-z_]+\d+[, ]*)+|L\d+(?:-L\d+)?")
_QUOTED = re.compile(r'"([^"]*)"')
_NAMES = {"name", "title", "label", "question", "options", "query", "content", "selections"}


def read_message(node: Mapping[str, Any], tally: Tally, _: str) -> ChatMessage | None:
    """Return what was said in a node of the tree; None for what ChatGPT does not show, and for tools."""
    message = object_of(node.get("message"))
    content, metadata = object_of(message.get("content")), object_of(message.get("metadata"))
    role, parts = first_text(message, "author.role"), content.get("parts")
    kind, time = text_of(content.get("content_type")) or "text", said_on(message)
    if role == "tool":
        pictures = [p for p in objects_of(parts) if p.get("content_type") == "image_asset_pointer"]
        tally.add("results of tools left out", not pictures)
        return ChatMessage("assistant", flatten(pictures, tally), None, time) if pictures else None
    if role not in ("user", "assistant") or kind not in _SPOKEN:
        tally.add("messages of other kinds left out", bool(message), kind=kind)
    elif role == "assistant" and text_of(message.get("recipient")) not in ("", "all"):
        return ChatMessage("assistant", placeholder("tool", message["recipient"]), None, time)
    elif text := _text(parts if kind != "code" else content.get("text"), metadata.get("attachments"), tally):
        text = without_marks(text, tally).strip() if role == "assistant" or "\ue200" in text else text
        speaker = first_text(message, "author.name") if role == "user" else ""  # in a group chat
        return ChatMessage("user" if role == "user" else "assistant", text, speaker or None, time) if text else None
    return None


def _text(parts: object, attachments: object, tally: Tally) -> str:
    """Return the text of a message's parts, and the names of its attachments, of which pictures are parts too."""
    files = objects_of(attachments)
    ids = [key for file in files if (key := text_of(file.get("id")))]
    if isinstance(parts, list):
        parts = [part for part in parts if not any(key in first_text(part, "asset_pointer") for key in ids)]
    names = (attachment(f.get("name") or f.get("id"), f.get("mime_type") or f.get("mimeType")) for f in files)
    return "\n".join(filter(None, [flatten(parts, tally), *names]))


def without_marks(text: str, tally: Tally) -> str:
    """Return a text with the words of its marks in their place; marks without a word are left out, and counted.

    >>> without_marks('\ue200entity\ue202["city","Linz"]\ue201 \ue200cite\ue202turn0search1\ue201!', Tally())
    'Linz!'
    """
    def words(match: re.Match[str]) -> str:
        kind = match[2] or "cite"
        found = "" if kind.endswith("cite") else _words(kind, (match[3] or "").split("\ue202"))
        tally.add("marks of ChatGPT's page left out", not found, kind=kind)
        return match[1] + found if found else ""

    return _STRAY.sub("", _MARK.sub(words, text))


def _words(kind: str, fields: list[str]) -> str:
    texts: list[str] = []
    for field in (field.strip() for field in fields):
        if field.startswith(("[", "{")):
            texts += _of_json(kind, field)
        elif field and kind != "genui" and not _RESULT.fullmatch(field):
            texts.append(field)
    if kind == "url" and len(texts) == 2:
        return f"{texts[0]} ({texts[1]})" if texts[0] != texts[1] else texts[0]
    return placeholder("image", ", ".join(texts)) if kind in ("image_group", "i") else ", ".join(texts)


def _of_json(kind: str, field: str) -> list[str]:
    """Return the names that a field's JSON holds; of an entity or a product the one after its kind or result."""
    value: Any = _QUOTED.findall(field)  # where it is cut off or wrongly escaped
    with suppress(ValueError):
        value = load_json(field)
    if kind.endswith("entity") and isinstance(value, list):
        return [name for entry in [*value[1:2], *value[:1]] if (name := text_of(entry))][:1]
    return list(dict.fromkeys(_names(value, False)))


def _names(value: object, is_name: bool) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _names(inner, key in _NAMES)
    elif isinstance(value, list):
        for inner in value:
            yield from _names(inner, is_name)
    elif is_name and (text := text_of(value)) and "<" not in text and not _RESULT.fullmatch(text):
        yield text
