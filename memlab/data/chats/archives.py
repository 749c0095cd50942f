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
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

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


class RawFile(NamedTuple):
    """A file before it is parsed.

    name: path inside the export, with ``/``; inner zips are folders of it. data: its bytes, or why an inner zip cannot
    be read.
    """

    name: str
    data: bytes | MemlabError


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
            try:
                yield from self._members(self._path, "", 1)
            except _DAMAGE as fault:
                raise _damage(fault, str(self._path), "download it again, or unpack it and give the folder") from fault
        else:
            yield RawFile(self._path.name, self._read(self._path))

    def _folder(self) -> Iterator[RawFile]:
        """Yield the files of the folder and of the zips in it; links are not followed."""
        found = []
        for path in self._path.rglob("*"):
            self._count(1)
            inner = path.relative_to(self._path)
            if (path.suffix.lower() in (*ENDINGS, ZIP) and not _is_hidden(inner.parts) and not path.is_symlink()
                    and path.is_file()):
                found.append((inner.as_posix().encode(errors="replace").decode(), path))
        for name, path in sorted(found):
            if _is_zip(name):
                yield from self._inner(path, name, 0)
            else:
                yield RawFile(name, self._read(path))

    def _read(self, path: Path) -> bytes:
        data = read_bytes(path, self._left, self._too_large())
        self._left -= len(data)
        return data

    def _members(self, source: Path | IO[bytes], within: str, depth: int) -> Iterator[RawFile]:
        """Yield the files of a zip; ``within`` is the beginning of their names, ``depth`` the number of zips."""
        with zipfile.ZipFile(source) as packed:
            entries = [entry for entry in packed.infolist() if not entry.is_dir()]
            self._count(len(entries))
            for entry in entries:
                name = entry.filename.replace("\\", "/")
                inner = _is_zip(name)
                if _is_hidden(PurePosixPath(name).parts) or not (inner or name.lower().endswith(ENDINGS)):
                    continue
                with packed.open(entry) as stream:
                    data = stream.read(max(self._left, 0) + 1)
                self._left -= len(data)
                if inner:
                    yield from self._inner(io.BytesIO(data), within + name, depth)
                    self._left += len(data)
                elif self._left < 0:
                    raise self._too_large()
                else:
                    yield RawFile(within + name, data)

    def _inner(self, source: Path | IO[bytes], name: str, depth: int) -> Iterator[RawFile]:
        """Yield the files of a zip in a zip or in a folder, or why it cannot be read."""
        if self._left < 0:
            yield RawFile(name, self._too_large(name))
        elif depth >= MOST_ZIPS:
            yield RawFile(name, MemlabError(
                f"zips are inside each other more than {MOST_ZIPS} times, the limit", where=name,
                fix="unpack the outer ones yourself if you trust them, and give the folder"))
        else:
            try:
                yield from self._members(source, f"{name}/", depth + 1)
            except _DAMAGE as fault:
                yield RawFile(name, _damage(fault, name, "download it again, or remove it"))

    def _count(self, number: int) -> None:
        self._files -= number
        if self._files < 0:
            raise MemlabError(f"there are more than {MAX_FILES:,} files in it", where=str(self._path),
                              fix="give the folder or the zip of the export itself")

    def _too_large(self, name: str = "") -> MemlabError:
        return MemlabError(f"there are more than {self._limit / 1e6:,.0f} MB of chats in it",
                           where=name or str(self._path), fix="import parts of it, or raise --max-mb")


def _damage(fault: Exception, where: str, fix: str) -> MemlabError:
    return MemlabError(f"the zip is damaged, or protected ({str(fault)[:80] or type(fault).__name__})", where=where,
                       fix=fix)


def _is_zip(name: str) -> bool:
    return name.lower().endswith(ZIP)


def _is_hidden(parts: tuple[str, ...]) -> bool:
    """Return whether a file is hidden, or is ChatGPT's page of the chats that its conversations.json holds."""
    return ("__MACOSX" in parts or parts[-1:] == ("chat.html",)
            or any(part.startswith(".") and part != ".." for part in parts))
