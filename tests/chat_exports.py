"""Exports made by hand to the structure of each vendor, and the sessions that come out of them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import yaml

from memlab.data.chats.conversation import Split, to_sessions
from memlab.data.chats.formats import load

SAMPLES: dict[str, dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "data" / "chats" / "samples.yaml").read_text(encoding="utf-8"))
"""A small export of each product of the table, by its name."""

T = 1709286000.5  # 2024-03-01 09:40:00 UTC

Rows = list[tuple[str, str | None, list[tuple[str, str | None, str]]]]
"""Name, date and turns (role, speaker, text) of each session."""


def json_lines(*lines: object) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


def write(folder: Path, files: Mapping[str, Any]) -> Path:
    """Write files by their names: text and bytes as they are, a list in a .jsonl line by line, the rest as JSON."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        is_log = name.endswith(".jsonl") and isinstance(content, list)
        path.write_bytes(as_bytes(json_lines(*content) if is_log else content))
    return folder


def pack(path: Path, files: Mapping[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(name, as_bytes(content))
    return path


def as_bytes(content: Any) -> bytes:
    if isinstance(content, bytes):
        return content
    return (content if isinstance(content, str) else json.dumps(content)).encode()


def read(path: Path, *, split: Split = "auto", zone: str = "UTC",
         **options: Any) -> tuple[Rows, dict[str, int], list[str]]:
    """Return the sessions of an export, the counts of what was left out, and the remarks."""
    export = load(path, **options)
    sessions = to_sessions(export.conversations, split, ZoneInfo(zone), export.tally)
    rows: Rows = [(s.name, s.said_on and s.said_on.isoformat(" ", "minutes"),
                   [(t.role, t.speaker, t.text) for t in s.turns]) for s in sessions]
    return rows, dict(export.tally.counts), export.tally.remarks


def node(key: str, parent: str | None, role: str | None = None, *parts: Any, kind: str = "text", at: float | None = T,
         **fields: Any) -> dict[str, Any]:
    """Return a node of ChatGPT's tree."""
    message = None if role is None else {
        "id": key, "author": {"role": role, "name": None, "metadata": {}}, "create_time": at, "weight": 1.0,
        "content": {"content_type": kind, "parts": list(parts)}, "recipient": "all", "metadata": {}, **fields}
    return {"id": key, "parent": parent, "children": [], "message": message}


def conversation(title: str, *nodes: dict[str, Any], current: str | None, at: float = T) -> dict[str, Any]:
    """Return a conversation of ChatGPT's export."""
    return {"title": title, "create_time": at, "update_time": at, "mapping": {n["id"]: n for n in nodes},
            "current_node": current, "conversation_id": title, "moderation_results": []}
