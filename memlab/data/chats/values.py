"""Typed values of JSON for the readers of exports; a value of another type is empty."""

from __future__ import annotations

from typing import Any

from memlab.data.chats.source import ExportFile


def text_of(value: object) -> str:
    """Return a text without blanks at its ends; "" for anything else."""
    return value.strip() if isinstance(value, str) else ""


def object_of(value: object) -> dict[str, Any]:
    """Return a JSON object; empty for anything else."""
    return value if isinstance(value, dict) else {}


def objects_of(value: object) -> list[dict[str, Any]]:
    """Return the JSON objects of a list; empty for anything else."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def entries_of(file: ExportFile) -> list[dict[str, Any]]:
    """Return the objects of a file: those of its list, or the one that it holds."""
    return objects_of([file.content] if isinstance(file.content, dict) else file.content)


def lines_of(file: ExportFile) -> list[dict[str, Any]]:
    """Return the objects of the lines of a .jsonl; empty for other files."""
    return objects_of([value for _, value in file.content or []]) if file.ending == ".jsonl" else []
