"""Typed values of JSON for the readers of exports; a value of another type is empty."""

from __future__ import annotations

from typing import Any

from memlab.data.chats.source import ExportFile


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


def entries_of(file: ExportFile) -> list[dict[str, Any]]:
    """Return the objects of a file: those of its list, or the one that it holds."""
    return objects_of([file.content] if isinstance(file.content, dict) else file.content)
