"""Files of other kinds in the place of a store's or a memory's, which no reader may wait for or read to the end."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

HUGE = 1 << 40
"""Bytes of a file of holes: nobody reads so many in a test."""

KINDS = ("pipe", "device", "folder", "holes", "lengthened", "lengths", "empty")


def forge(path: Path, kind: str) -> None:
    """Put a forgery in the place of a file.

    holes: zeros alone, a terabyte; lengthened: the file, and zeros up to a terabyte; lengths: the largest numbers in
    the place of its first 64 bytes behind the mark.
    """
    content = path.read_bytes() if path.is_file() else b""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    elif kind == "lengths":
        path.write_bytes(content[:16] + b"\xff\xff\xff\xff\xff\xff\xff\x7f" * 6 + content[64:])
    else:
        path.write_bytes(content if kind == "lengthened" else b"")
        if kind != "empty":
            os.truncate(path, HUGE)
