"""Files of an export: one file, a folder or a zip, read into memory within limits; nothing is unpacked to the disk."""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from memlab.errors import MemlabError
from memlab.runtime import foreign

ENDINGS = (".json", ".jsonl", ".txt", ".html")
MAX_MB = 1000.0
MAX_FILES = 200_000


@dataclass(frozen=True)
class ExportFile:
    """A file of an export.

    name: path inside the export, with ``/``. content: the value of a .json, the list of (line number, value) of a
    .jsonl, the text of a .txt or .html; None if the file cannot be read. fault: the reason, for the user. cut: whether
    the last line of a .jsonl was left out because it is incomplete.
    """

    name: str
    content: Any = None
    fault: MemlabError | None = None
    cut: bool = False

    @property
    def stem(self) -> str:
        """The file's name without folders and ending."""
        return PurePosixPath(self.name).stem

    @property
    def folder(self) -> str:
        """The name of the folder that holds the file; empty at the top."""
        return PurePosixPath(self.name).parent.name

    @property
    def ending(self) -> str:
        """The ending of the name in small letters, with its dot."""
        return PurePosixPath(self.name).suffix.lower()


def open_export(path: Path, max_mb: float = MAX_MB) -> list[ExportFile]:
    """Read the .json, .jsonl, .txt and .html files of an export, in the order of their names.

    ``max_mb``: limit of all these files together, unpacked, in MB. A file that cannot be read keeps its fault. Raises
    MemlabError where the export as a whole cannot be read, is too large or holds no such file.
    """
    limit = int(max_mb * 1e6)
    budget: foreign.ValueBudget | None = None
    try:
        if path.is_dir():
            raw = _of_folder(path, limit)
        elif not path.is_file():
            raise MemlabError("there is no such file or folder", where=str(path))
        elif path.suffix.lower() == ".zip" or zipfile.is_zipfile(path):
            raw, budget = _of_zip(path, limit), foreign.value_budget(path.stat().st_size)
        else:
            raw = iter([(path.name, foreign.read_bytes(path, limit, _too_large(str(path), limit)))])
        files = [parse(name, data, budget) for name, data in raw]  # one by one: the bytes of one are held at a time
    except OSError as fault:
        raise MemlabError(f"it cannot be read ({fault.strerror or fault})", where=str(path),
                          fix="check its permissions") from fault
    if not files:
        raise MemlabError(f"there is no file in it that ends in {', '.join(ENDINGS)}", where=str(path),
                          fix="give the export as the vendor sent it")
    return sorted(files, key=lambda file: file.name)


def parse(name: str, data: bytes, budget: foreign.ValueBudget | None = None) -> ExportFile:
    """Return the file with its content, or with its fault; ``budget`` limits the values of JSON."""
    if name.lower().endswith(".jsonl"):
        return _lines(name, data, budget)
    try:
        text = data.decode(_encoding(data))
    except UnicodeDecodeError as fault:
        return _damage(name, f"byte {fault.start} is not {fault.encoding.upper()}", "save it as UTF-8")
    if name.lower().endswith((".txt", ".html")):
        return ExportFile(name, text)
    try:
        return ExportFile(name, foreign.load_json(text, name, budget))
    except ValueError as fault:
        if name.lower().endswith(".json") or not text.strip():
            return _damage(name, f"this is not JSON, or it is cut off ({str(fault)[:80]})", "copy the export again")
        return ExportFile(name, text)
    except MemlabError as fault:
        return ExportFile(name, fault=fault)


def _encoding(data: bytes) -> str:
    return "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def _text_lines(data: bytes) -> Iterator[str]:
    """Yield the lines one by one, each with its line feed; raise UnicodeDecodeError where one is no text."""
    if (encoding := _encoding(data)) == "utf-16":
        yield from io.TextIOWrapper(io.BytesIO(data), encoding, newline="\n")
        return
    for line in io.BytesIO(data):  # decoded each for itself, so that a fault is that of its line
        yield line.decode(encoding)
        encoding = "utf-8"  # a mark stands before the first line alone


def _lines(name: str, data: bytes, budget: foreign.ValueBudget | None) -> ExportFile:
    values = []
    number = 0
    try:
        if budget is not None:
            budget.spend(1 + data.count(b"\n"), name)
        for number, line in enumerate(_text_lines(data), start=1):
            if not line.strip():
                continue
            try:
                values.append((number, foreign.load_json(line, f"{name}, line {number}", budget)))
            except ValueError as fault:
                if number > 1 and not line.endswith("\n"):  # the writer was interrupted
                    return ExportFile(name, values, cut=True)
                return _damage(name, f"this is not JSON ({str(fault)[:80]})", "correct or remove the line", number)
    except UnicodeDecodeError as fault:
        return _damage(name, f"byte {fault.start} is not {fault.encoding.upper()}", "save it as UTF-8", number + 1)
    except MemlabError as fault:
        return ExportFile(name, fault=fault)
    return ExportFile(name, values)


def _damage(name: str, what: str, fix: str, line: int | None = None) -> ExportFile:
    return ExportFile(name, fault=MemlabError(what, where=name if line is None else f"{name}, line {line}", fix=fix))


def _too_large(where: str, limit: int) -> MemlabError:
    return MemlabError(f"there are more than {limit / 1e6:,.0f} MB of chats in it", where=where,
                       fix="import parts of it, or raise --max-mb")


def _is_hidden(parts: tuple[str, ...]) -> bool:
    """Return whether a file is hidden, or is ChatGPT's page of the chats that its conversations.json holds."""
    return ("__MACOSX" in parts or parts[-1:] == ("chat.html",)
            or any(part.startswith(".") and part != ".." for part in parts))


def _of_folder(folder: Path, limit: int) -> Iterator[tuple[str, bytes]]:
    left = limit
    for count, path in enumerate(folder.rglob("*")):
        if count > MAX_FILES:
            raise MemlabError(f"there are more than {MAX_FILES:,} files in it", where=str(folder),
                              fix="give the folder of the export itself")
        inner = path.relative_to(folder)
        if (path.suffix.lower() in ENDINGS and not _is_hidden(inner.parts) and not path.is_symlink()
                and path.is_file()):
            data = foreign.read_bytes(path, left, _too_large(str(folder), limit))
            left -= len(data)
            yield inner.as_posix().encode(errors="replace").decode(), data


def _of_zip(path: Path, limit: int) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a zip; sizes are measured while unpacking, since a zip may state any size."""
    packed_bytes = path.stat().st_size
    most = foreign.unpacked_limit(packed_bytes)
    error = _too_large(str(path), limit) if limit <= most else foreign.unpacks_to_more(path, packed_bytes)
    left = min(limit, most)
    try:
        with zipfile.ZipFile(path) as packed:
            entries = [entry for entry in packed.infolist() if not entry.is_dir()]
            if len(entries) > MAX_FILES:
                raise MemlabError(f"there are more than {MAX_FILES:,} files in it", where=str(path))
            for entry in entries:
                parts = PurePosixPath(entry.filename.replace("\\", "/")).parts
                if PurePosixPath(entry.filename).suffix.lower() not in ENDINGS or _is_hidden(parts):
                    continue
                data = _unpack(packed, entry, left + 1)
                left -= len(data)
                if left < 0:
                    raise error
                yield entry.filename.replace("\\", "/"), data
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError, ValueError,
            struct.error) as fault:
        raise MemlabError(f"the zip is damaged, or protected ({str(fault)[:80] or type(fault).__name__})",
                          where=str(path), fix="download it again, or unpack it and give the folder") from fault


def _unpack(packed: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int) -> bytes:
    """Return the first ``most`` bytes of an entry; raise BadZipFile where bzip2 finds damage, which is an OSError."""
    try:
        with packed.open(entry) as stream:
            return stream.read(most)
    except OSError as fault:
        if fault.errno is not None:
            raise
        raise zipfile.BadZipFile(str(fault)) from fault
