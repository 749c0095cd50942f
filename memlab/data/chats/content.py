"""Typed values of JSON, and the content of messages as text: parts, placeholders of pictures, files, voice and tools.

A value of another type is empty. Messages as OpenAI's API takes them, ``{"role": "user", "content": ...}``, are read
here as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memlab.data.chats.conversation import ChatMessage, Tally
from memlab.data.chats.schema import BOOK, read_book
from memlab.data.chats.times import said_on
from memlab.support.errors import MemlabError

_ENDINGS = {"image": "jpg jpeg png webp heic gif bmp", "video": "mp4 mov 3gp", "audio": "opus m4a mp3 ogg aac amr"}
_SAID = {"content", "tool_calls", "function_call", "refusal", "audio"}
_THOUGHTS = ("reasoning_content", "reasoning")


def text_of(value: object) -> str:
    """Return a text without blanks at its ends; "" for anything else."""
    return value.strip() if isinstance(value, str) else ""


def name_of(value: object) -> str:
    """Return a text, or a whole number as text; "" for anything else."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else text_of(value)


def object_of(value: object) -> dict[str, Any]:
    """Return a JSON object; empty for anything else."""
    return value if isinstance(value, dict) else {}


def objects_of(value: object) -> list[dict[str, Any]]:
    """Return the JSON objects of a list; empty for anything else."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def walk(value: Any, path: str) -> Iterator[Any]:
    """Yield the values at a path.

    >>> list(walk({"a": [{"b": 1}, {"b": None}, {}]}, "a.*.b")), list(walk([7, 8], "1"))
    ([1, None], [8])
    """
    if path in ("", "."):
        yield value
        return
    step, _, rest = path.partition(".")
    if step in ("*", "[]"):
        values = value.values() if isinstance(value, dict) and step == "*" else value
        for inner in values if not isinstance(values, str | dict) and isinstance(values, Iterable) else ():
            yield from walk(inner, rest)
    elif isinstance(value, dict) and step in value:
        yield from walk(value[step], rest)
    elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
        yield from walk(value[int(step)], rest)


def first_at(value: Any, paths: Iterable[str]) -> Any:
    """Return the first value that holds something at one of several paths; None for none."""
    return next((found for path in paths for found in walk(value, path) if found not in (None, "", [], {})), None)


def first_text(value: Any, *paths: str) -> str:
    """Return the first text at one of several paths; "" for none.

    >>> first_text({"profile": {"name": " "}, "id": "U1"}, "profile.name", "name", "id")
    'U1'
    """
    return next(filter(None, (text_of(found) for path in paths for found in walk(value, path))), "")


def placeholder(kind: str, name: object = "") -> str:
    """Return the placeholder of content that is not text.

    >>> placeholder("image", "cat.png"), placeholder("file"), placeholder("tool", " a\\nb ")
    ('[image: cat.png]', '[file]', '[tool: a b]')
    """
    label = " ".join(text_of(name).split()).replace("]", ")")[:200]
    return f"[{kind}: {label}]" if label else f"[{kind}]"


def attachment(name: object, mime: object = "") -> str:
    """Name an attachment by its kind, which is that of the name's ending for a ``mime`` that is "".

    >>> attachment("a.png", "image/png"), attachment("b.pdf", "application/pdf"), attachment("c.m4a")
    ('[image: a.png]', '[file: b.pdf]', '[audio: c.m4a]')
    """
    ending = text_of(name).rpartition(".")[2].lower()
    kind = text_of(mime).split("/")[0].lower() if mime != "" else next(
        (kind for kind, endings in _ENDINGS.items() if ending in endings.split()), "file")
    return placeholder(kind if kind in _ENDINGS else "file", name)


def last_step(address: str) -> str:
    """Return the last step of an address; "" for none, and for data that stand in it."""
    path = re.split("[?#]", address, maxsplit=1)[0]
    is_host = path.startswith(("http://", "https://")) and path.count("/") < 3
    return "" if is_host or path.startswith("data:") else path.rpartition("/")[2]


def flatten(content: object, tally: Tally, glue: str = "\n") -> str:
    """Return the text of a content: a text, or a list of texts and parts with a ``type``, joined by ``glue``.

    Thoughts and results of tools are left out, and counted.

    >>> flatten([{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "http://x/cat.png"}},
    ...          {"type": "tool_use", "name": "Read"}, {"type": "thinking", "thinking": "..."}], Tally())
    'Look:\\n[image: cat.png]\\n[tool: Read]'
    """
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return text_of(content)
    if not glue:  # pieces of one text, with the blanks at their ends
        return "".join(text for part in content if isinstance(text := object_of(part).get("text", part), str))
    parts = (part.strip() if isinstance(part, str) else _part(part, tally) for part in content
             if isinstance(part, str | dict))
    return glue.join(part for part in parts if part)


def _part(part: dict[str, Any], tally: Tally) -> str:
    sorts = read_book(BOOK).parts
    kind = first_text(part, "style.type", "type", "kind", "phase", "content_type").lower()
    if not kind:  # Gemini's API names a part by its field
        key = next((key for key in part if key.lower() in sorts and key != "text" and part[key]), "")
        kind, part = key.lower(), {**part, **object_of(part.get(key))}
    is_result = kind.endswith(("_result", "_call_output"))
    sort = "results of tools left out" if is_result else sorts.get(kind, "")
    if sort == "text" or not kind:
        text = first_text(part, "text", "text.value", "refusal", "content", "content.value", "value")
        return text or flatten(part.get("content"), tally)
    if sort == "silent" or sort.endswith("left out"):
        tally.add(sort, sort != "silent")
        return ""
    if sort == "call":
        return placeholder("tool", part.get("name") or part.get("toolId"))
    if sort in ("image", "file"):
        return placeholder(sort, _file_name(part))
    name = "audio" if "audio" in kind else kind.removesuffix("_asset_pointer").removesuffix("_container")
    return text_of(part.get("text")) or placeholder(name, part.get("name"))


def _file_name(part: dict[str, Any]) -> str:
    """Return the name of a picture or file, or the last step of its address; "" for data that stand in the message."""
    name = first_text(part, *(f"{holder}{key}" for holder in ("", "image_url.", "file.", "source.")
                              for key in ("filename", "file_name", "title", "name")))
    addresses = (first_text(part, path) for path in ("image_url", "image_url.url", "source.url", "imageUrl",
                                                     "asset_pointer", "inlineReference.path"))
    return name or next(filter(None, map(last_step, addresses)), "")


def read_openai(value: Mapping[str, Any], tally: Tally, where: str) -> ChatMessage | None:
    """Return one message; None for instructions, tools' results and blank ones; raise MemlabError if it is none."""
    role = value.get("role")
    if not isinstance(role, str) or not _SAID & value.keys():
        raise MemlabError('expected an object with "role" and "content"', where=where,
                          fix='write {"role": "user", "content": "..."}')
    if (words := read_book(BOOK).roles.get(role, "")).endswith("left out"):
        tally.add(words)
        return None
    if role not in ("user", "assistant", "model"):
        raise MemlabError(f"there is no role '{role:.40}'", where=where, fix="write user or assistant")
    content = value.get("content")
    if content is not None and not isinstance(content, str | list | dict):
        raise MemlabError("expected text or a list of parts", where=f"{where}, field content")
    tally.add("thoughts of the assistant left out", any(text_of(value.get(key)) for key in _THOUGHTS))
    audio = object_of(value.get("audio"))
    calls = [*objects_of(value.get("tool_calls")), *objects_of([value.get("function_call")])]
    parts = [flatten(content, tally), text_of(value.get("refusal")), placeholder("audio") if audio else "",
             text_of(audio.get("transcript")),
             *(placeholder("tool", first_text(call, "function.name", "name")) for call in calls)]
    text = "\n".join(part for part in parts if part)
    speaker = text_of(value.get("name")) or None
    return ChatMessage("user" if role == "user" else "assistant", text, speaker, said_on(value)) if text else None
