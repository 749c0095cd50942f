"""Files of a folder, of a zip, and of zips inside them, within one limit that holds for all of them together.

Vendors send zips in a zip, and folders of zips. Everything is unpacked into memory, nothing to the disk.
"""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from memlab.support.errors import MemlabError
from memlab.support.foreign import read_bytes

TEXTS = (".txt", ".html", ".md")
ENDINGS = (".json", ".jsonl", ".csv", ".mbox", ".af", *TEXTS)
ZIP = ".zip"

MAX_FILES = 200_000
"""Files of an export, with those of all its zips."""

MOST_ZIPS = 3
"""Zips inside each other; OpenAI's privacy portal sends two."""

_DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError, ValueError,
           OSError, struct.error)


RawFile = tuple[str, bytes | MemlabError]
"""A path inside the export, with ``/``, where inner zips are folders; and its bytes, or why a zip cannot be read."""


class ExportReader:
    """The files of an export; ``limit`` is that of the bytes in memory: the chats, and the inner zips that are open.

    Sizes are measured while unpacking, since a zip may state any size.
    """

    def __init__(self, path: Path, limit: int) -> None:
        self._path, self._limit, self._left, self._files = path, limit, limit, MAX_FILES

    def files(self) -> Iterator[RawFile]:
        """Yield the files; raise MemlabError for a damaged zip, and where they pass a limit."""
        if self._path.is_dir():
            yield from self._folder()
        elif _is_zip(self._path.name) or zipfile.is_zipfile(self._path):
            for name, data in self._zip(self._path, "", 1):
                if not name and isinstance(data, MemlabError):
                    raise MemlabError(data.what, where=str(self._path),
                                      fix="download it again, or unpack it and give the folder")
                yield name, data
        else:
            yield self._path.name, self._read(self._path)

    def _folder(self) -> Iterator[RawFile]:
        """Yield the files of the folder and of the zips in it; links are not followed."""
        found = []
        for path in self._path.rglob("*"):
            self._count(1)
            inner = path.relative_to(self._path)
            if _may_hold_chats(inner.as_posix()) and not path.is_symlink() and path.is_file():
                found.append((inner.as_posix().encode(errors="replace").decode(), path))
        for name, path in sorted(found):
            if _is_zip(name):
                yield from self._zip(path, name, 1)
            else:
                yield name, self._read(path)

    def _read(self, path: Path) -> bytes:
        data = read_bytes(path, self._left, self._too_large())
        self._left -= len(data)
        return data

    def _zip(self, source: Path | IO[bytes], name: str, depth: int) -> Iterator[RawFile]:
        """Yield the files of a zip; under its name the reason why it cannot be read. depth: zips inside each other."""
        try:
            with zipfile.ZipFile(source) as packed:
                entries = [entry for entry in packed.infolist() if not entry.is_dir()]
                self._count(len(entries))
                for entry in entries:
                    inner = entry.filename.replace("\\", "/")
                    if not _may_hold_chats(inner):
                        continue
                    with packed.open(entry) as stream:
                        data = stream.read(max(self._left, 0) + 1)
                    yield from self._member(f"{name}/{inner}" if name else inner, data, depth)
        except _DAMAGE as fault:
            yield name, MemlabError(f"the zip is damaged, or protected ({str(fault)[:80] or type(fault).__name__})",
                                    where=name, fix="download it again, or remove it")

    def _member(self, name: str, data: bytes, depth: int) -> Iterator[RawFile]:
        """Yield a file of a zip, or those of the zip that it is."""
        self._left -= len(data)
        if not _is_zip(name):
            if self._left < 0:
                raise self._too_large()
            yield name, data
            return
        if self._left < 0:
            yield name, self._too_large(name)
        elif depth >= MOST_ZIPS:
            yield name, MemlabError(f"zips are inside each other more than {MOST_ZIPS} times, the limit", where=name,
                                    fix="unpack the outer ones yourself if you trust them, and give the folder")
        else:
            yield from self._zip(io.BytesIO(data), name, depth + 1)
        self._left += len(data)

    def _count(self, number: int) -> None:
        self._files -= number
        if self._files < 0:
            raise MemlabError(f"there are more than {MAX_FILES:,} files in it", where=str(self._path),
                              fix="give the folder or the zip of the export itself")

    def _too_large(self, name: str = "") -> MemlabError:
        return MemlabError(f"there are more than {self._limit / 1e6:,.0f} MB of chats in it",
                           where=name or str(self._path), fix="import parts of it, or raise --max-mb")


def _is_zip(name: str) -> bool:
    return name.lower().endswith(ZIP)


def _may_hold_chats(name: str) -> bool:
    """Return whether a file is read: not one that is hidden, or ChatGPT's page of what conversations.json holds."""
    parts = name.split("/")
    hidden = any(part.startswith(".") and part != ".." for part in parts)
    return name.lower().endswith((*ENDINGS, ZIP)) and not hidden and "__MACOSX" not in parts and (
        parts[-1] != "chat.html")
