"""Errors for paths that a data set cannot read: what the path is instead, and the words to type."""

from __future__ import annotations

import os
from pathlib import Path

from memlab.support.errors import MemlabError
from memlab.support.paths import nearest
from memlab.support.shell import data_path, word

OWN = "sessions.jsonl"


def export_at(path: Path) -> MemlabError | None:
    """Return the error for a chat export, which data sets do not read as it is; None if a path is none."""
    from memlab.data.chats.formats import recognise  # all importers: only where something is wrong

    title = recognise(path) if os.path.exists(path) else None
    if title is None:
        return None
    return MemlabError(f"this is a {title}, which is not read as it is", where=str(path),
                       fix=f"import it: memlab import {word(str(path))}")


def holds_sessions(path: Path) -> bool:
    """Return whether a path is a folder that data=custom reads."""
    return os.path.isfile(path / OWN)  # False, and no error, where the folder cannot be read


def instead(path: Path | None, fault: MemlabError) -> MemlabError:
    """Return the error to raise for a path that is not as expected: ``fault``, unless it is a known other thing.

    For a missing path with a neighbour of nearly its name, that is suggested first.
    """
    if path is None:
        return fault
    if holds_sessions(path) and OWN not in fault.what:
        return MemlabError(f"this is a folder of sessions: {fault.what}", where=str(path),
                           fix=f"data=custom {data_path(str(path))}")
    if near := nearest(path):
        return MemlabError(fault.what, where=fault.where, fix=f"did you mean {data_path(str(near))}? Else {fault.fix}")
    return export_at(path) or fault
