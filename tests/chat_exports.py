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

Rows = list[tuple[str, str | None, list[tuple[str, str | None, str]]]]
"""Name, date and turns (role, speaker, text) of each session."""


def json_lines(*lines: object) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


def write(folder: Path, files: Mapping[str, Any]) -> Path:
    """Write files by their names: text and bytes as they are, anything else as JSON."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(as_bytes(content))
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
