"""Files of a folder, of a zip, and of zips inside them, within limits that hold for all of them together.

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

from memlab.errors import MemlabError
from memlab.runtime import foreign

ENDINGS = (".json", ".jsonl", ".txt", ".html")
ZIP = ".zip"

MAX_FILES = 200_000
"""Files of an export, with those of all its zips."""

MOST_ZIPS = 3
"""Zips inside each other; OpenAI's privacy portal sends two."""

_CENTRAL_ENTRY = b"PK\x01\x02"
_DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError, ValueError,
           struct.error)


class RawFile(NamedTuple):
    """A file before it is parsed.

    name: path inside the export, with ``/``; inner zips are folders of it. data: its bytes, or why an inner zip cannot
    be read.
    """

    name: str
    data: bytes | MemlabError


def read_file(path: Path, limit: int) -> Iterator[RawFile]:
    """Yield the one file at ``path``, of at most ``limit`` bytes."""
    yield RawFile(path.name, foreign.read_bytes(path, limit, too_large(str(path), limit)))


def read_folder(folder: Path, limit: int) -> Iterator[RawFile]:
    """Yield the files of a folder and of the zips in it; links are not followed."""
    paths = []
    for count, path in enumerate(folder.rglob("*")):
        if count >= MAX_FILES:
            raise _too_many(str(folder))
        inner = path.relative_to(folder)
        if (path.suffix.lower() in (*ENDINGS, ZIP) and not _is_hidden(inner.parts) and not path.is_symlink()
                and path.is_file()):
            paths.append((inner.as_posix().encode(errors="replace").decode(), path))
    packed = sum(path.stat().st_size for name, path in paths if _is_zip(name))
    unpacking = _Unpacking(folder, packed, limit)
    for name, path in sorted(paths):
        if _is_zip(name):
            yield from unpacking.inner(path, name, 0)
        else:
            data = foreign.read_bytes(path, unpacking.left, too_large(str(folder), limit))
            unpacking.left -= len(data)
            yield RawFile(name, data)


def read_zip(path: Path, limit: int) -> Iterator[RawFile]:
    """Yield the files of a zip and of the zips in it; raise MemlabError where it is damaged."""
    try:
        yield from _Unpacking(path, path.stat().st_size, limit).members(path, "", 1)
    except _DAMAGE as fault:
        raise _damage(fault, str(path), "download it again, or unpack it and give the folder") from fault


class _Unpacking:
    """The limits of one import: bytes that are kept, bytes that are unpacked, number of files.

    Sizes are measured while unpacking, since a zip may state any size. ``left`` counts what is in memory: the chats,
    and the inner zips that are open.
    """

    def __init__(self, path: Path, packed: int, limit: int) -> None:
        self._path, self._packed, self._limit = path, packed, limit
        self.left = limit
        self._unpacked = foreign.unpacked_limit(packed)
        self._files = MAX_FILES

    def members(self, source: Path | IO[bytes], within: str, depth: int) -> Iterator[RawFile]:
        """Yield the files of a zip; ``within`` is the beginning of their names, ``depth`` the number of zips."""
        with zipfile.ZipFile(source) as packed:
            entries = [entry for entry in packed.infolist() if not entry.is_dir()]
            self._files -= len(entries)
            if self._files < 0:
                raise _too_many(str(self._path))
            for entry in entries:
                name = entry.filename.replace("\\", "/")
                if _is_hidden(PurePosixPath(name).parts):
                    continue
                if _is_zip(name):
                    data = self._unpack(packed, entry)
                    self.left -= len(data)
                    yield from self.inner(data, within + name, depth)
                    self.left += len(data)
                elif PurePosixPath(name).suffix.lower() in ENDINGS:
                    data = self._unpack(packed, entry)
                    self.left -= len(data)
                    if self.left < 0:
                        raise too_large(str(self._path), self._limit)
                    yield RawFile(within + name, data)

    def inner(self, source: Path | bytes, name: str, depth: int) -> Iterator[RawFile]:
        """Yield the files of a zip in a zip or in a folder, or why it cannot be read."""
        try:
            if self.left < 0:
                raise too_large(name, self._limit)
            if depth >= MOST_ZIPS:
                raise MemlabError(f"zips are inside each other more than {MOST_ZIPS} times, the limit", where=name,
                                  fix="unpack the outer ones yourself if you trust them, and give the folder")
        except MemlabError as fault:
            yield RawFile(name, fault)
            return
        if isinstance(source, bytes) and source.count(_CENTRAL_ENTRY) > self._files:  # each costs a kilobyte once read
            raise _too_many(str(self._path))
        try:
            yield from self.members(source if isinstance(source, Path) else io.BytesIO(source), f"{name}/", depth + 1)
        except _DAMAGE as fault:
            yield RawFile(name, _damage(fault, name, "download it again, or remove it"))

    def _unpack(self, packed: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
        """Return the bytes of an entry, or one byte more than there is room for."""
        most = min(self.left, self._unpacked) + 1
        try:
            with packed.open(entry) as stream:
                data = stream.read(most)
        except OSError as fault:
            if fault.errno is not None:
                raise
            raise zipfile.BadZipFile(str(fault)) from fault  # bzip2's word for damage
        self._unpacked -= len(data)
        if self._unpacked < 0:
            raise foreign.unpacks_to_more(self._path, self._packed)
        return data


def too_large(where: str, limit: int) -> MemlabError:
    """Return the error for an export with more than ``limit`` bytes of chats."""
    return MemlabError(f"there are more than {limit / 1e6:,.0f} MB of chats in it", where=where,
                       fix="import parts of it, or raise --max-mb")


def _too_many(where: str) -> MemlabError:
    return MemlabError(f"there are more than {MAX_FILES:,} files in it", where=where,
                       fix="give the folder or the zip of the export itself")


def _damage(fault: Exception, where: str, fix: str) -> MemlabError:
    return MemlabError(f"the zip is damaged, or protected ({str(fault)[:80] or type(fault).__name__})", where=where,
                       fix=fix)


def _is_zip(name: str) -> bool:
    return name.lower().endswith(ZIP)


def _is_hidden(parts: tuple[str, ...]) -> bool:
    """Return whether a file is hidden, or is ChatGPT's page of the chats that its conversations.json holds."""
    return ("__MACOSX" in parts or parts[-1:] == ("chat.html",)
            or any(part.startswith(".") and part != ".." for part in parts))
