"""Configuration files of a user, for tests."""

from __future__ import annotations

from pathlib import Path


def put(folder: Path, **files: str) -> Path:
    """Write files, ``__`` in a name stands for a slash; return the folder."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
