"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from memlab.errors import MemlabError

TEMPORARY = ".tmp"
_FULL = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "the disk quota is used up",
         errno.EFBIG: "the limit on file sizes is reached"}


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn the operating system's refusals into a message that says where, and what to do."""
    try:
        yield
    except OSError as error:
        raise MemlabError(
            f"the store cannot be written: {_FULL.get(error.errno or 0, error.strerror or error)} "
            "(what was stored before is kept)", where=str(path),
            fix="free some space there, or put the store elsewhere with store=DIR or MEMLAB_HOME=DIR") from error



def write_aside(data: bytes | memoryview, path: Path) -> None:
    """Write a file so that it is there whole or not at all, whatever kills the process meanwhile."""
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f".{os.getpid()}-{secrets.token_hex(8)}{TEMPORARY}")
        try:
            with open(aside, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())  # network disks report a full quota only here
            os.replace(aside, path)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise


def write_json(path: Path, content: Any) -> None:
    """Write JSON so that the file is either whole or absent."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_text(json.dumps(content, indent=1, sort_keys=False, allow_nan=False, default=str) + "\n",
                         encoding="utf-8")
        os.replace(aside, path)
    except OSError:
        with suppress(OSError):
            aside.unlink()
        raise



def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object that ``write_json`` wrote."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content
