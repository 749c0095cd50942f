"""A cache of results on disk, shared by processes: one checked line of JSON each, in ``$MEMLAB_HOME/cache``.

A result is found by the digest of all that it follows from: its inputs, memlab's source, and Python's version. Whatever
changes makes another digest, so that nothing becomes out of date. A damaged file is none, and is written again.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from memlab.support.errors import DiskFault, MemlabError
from memlab.support.files import atomic_path, decode_line, encode_line, open_plain, sweep_leftovers
from memlab.support.paths import PACKAGE, home
from memlab.support.redaction import redact_tree

FOLDER = "cache"
MOST = 2000
"""Files, of 20 kB at most; a sweep has one for each arm. When there are more, the oldest half is removed."""


def load_or_make(inputs: Any, make: Callable[[], Any]) -> Any:
    """Return what ``make`` returns, as plain JSON values; from disk if it was made from equal inputs before.

    ``inputs`` are all that the result follows from, as JSON values. A result that holds keys, or that JSON would
    change, is not kept.
    """
    path = _place(inputs)
    if path is not None:
        with suppress(OSError), open_plain(path) as file:
            if (row := decode_line(file.read())) is not None:
                return row["result"]
    result = make()
    if path is not None:
        _write(path, result)
    return result


def _place(inputs: Any) -> Path | None:
    """Return the file of the result of these inputs; None if there is no home for it."""
    with suppress(MemlabError):
        return home() / FOLDER / f"{digest_of([sys.version, own_digest(), inputs])}.json"
    return None


def _write(path: Path, result: Any) -> None:
    """Write a result; without space or permission, and if it cannot be kept, there is no file."""
    with suppress(OSError, DiskFault, TypeError, ValueError, RecursionError):
        line = encode_line({"result": result})
        if decode_line(line) == {"result": result} == redact_tree({"result": result}):
            _make_room(path.parent)
            sweep_leftovers(path)
            with atomic_path(path, sync=False) as temporary:
                temporary.write_bytes(line)


def _make_room(folder: Path) -> None:
    files = list(folder.glob("*.json"))
    if len(files) >= MOST:
        for path in sorted(files, key=lambda path: path.stat().st_mtime)[:MOST // 2]:
            path.unlink(missing_ok=True)


def source_files(package: Path) -> dict[str, str]:
    """Return the files of a package, path in it -> text of Python, digest of others; none of ``__pycache__``."""
    files: dict[str, str] = {}
    for folder, inner, names in os.walk(package):
        inner[:] = [name for name in inner if name != "__pycache__"]
        for path in (f"{folder}/{name}" for name in names if not name.startswith(".")):
            if os.path.isfile(path):
                content = Path(path).read_bytes()
                files[path.removeprefix(f"{package}/")] = (
                    content.decode(errors="replace") if path.endswith(".py") else hashlib.blake2b(content).hexdigest())
    return dict(sorted(files.items()))


@cache
def own_files() -> dict[str, str]:
    """Return the source that this process runs, as it was when it was first needed."""
    return source_files(PACKAGE)


@cache
def own_digest() -> str:
    """Return the digest of the source that this process runs, byte by byte."""
    return digest_of(own_files())


def digest_of(value: Any) -> str:
    """Return the digest of plain JSON values, 16 bytes in hexadecimal."""
    return hashlib.blake2b(json.dumps(value).encode(), digest_size=16).hexdigest()
