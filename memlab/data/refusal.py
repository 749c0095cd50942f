"""Errors for paths that a data set cannot read: what the path is instead, and the words to type."""

from __future__ import annotations

import os
from pathlib import Path

from memlab.errors import MemlabError
from memlab.runtime.shell import data_path, word
from memlab.runtime.terminal import printable

OWN = "sessions.jsonl"


def export_at(path: Path) -> MemlabError | None:
    """Return the error for a chat export, which data sets do not read as it is; None if a path is none."""
    from memlab.chats.formats import recognise  # the importers read folders of their own

    title = recognise(path) if os.path.exists(path) else None
    return title and MemlabError(f"this is a {title}, which is not read as it is", where=str(path),
                                 fix=f"import it: memlab import {word(str(path))}") or None


def _holds_sessions(path: Path) -> bool:
    return os.path.isfile(path / OWN)  # False, and no error, where the folder cannot be read


def instead(path: Path | None, fault: MemlabError) -> MemlabError:
    """Return the error to raise for a path that is not as expected: ``fault``, unless it is a known other thing."""
    if path is None:
        return fault
    if _holds_sessions(path) and OWN not in fault.what:
        return MemlabError(f"this is a folder of sessions: {fault.what}", where=str(path),
                           fix=f"data=custom {data_path(str(path))}")
    return export_at(path) or fault


def without_data(place: object, chosen: str) -> str:
    """Return the fault of ``data.path=place`` where the chosen data set reads no path."""
    from memlab.config.instantiate import choice_settings, options, with_defaults

    path = Path(str(place))
    words = data_path(str(place))
    what = f"data={chosen} is chosen, which reads no file"
    if _holds_sessions(path):
        return f"{what}; write data=custom {words}"
    if export := export_at(path):
        return f"{what}; {export.what.partition(',')[0]}: memlab import {word(str(path))}"
    readers = [name for name in options("data") if "path" in with_defaults(choice_settings(f"data/{name}"))]
    return printable(f"{what}; name the data set of this path: data=custom {words} (a folder with {OWN}), or data= "
                     f"{', '.join(name for name in readers if name != 'custom')}")
