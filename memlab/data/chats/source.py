"""Files of a folder, of a zip, and of zips inside them, within one limit for all of them together, and what they hold.

Vendors send zips in a zip, and folders of zips. Everything is unpacked into memory, nothing to the disk. A file is
parsed to the values of its JSON, CSV, mails or page of My Activity; the text of others is kept, or the fault.
"""

from __future__ import annotations

import csv
import io
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import parseaddr
from pathlib import Path, PurePosixPath
from typing import IO, Any

from memlab.data.chats.gemini import read_page
from memlab.support.errors import MemlabError
from memlab.support.foreign import load_json, read_bytes
from memlab.support.paths import nearest

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

MAIL = ".mbox"
_BEGIN = re.compile(rb"^From [^\n]*\d{4}[^\n]*\n", re.MULTILINE)
_REPLY = re.compile(r"^(?:\s*(?:re|fwd?|aw|wg|tr|sv|antw|r|i)\s*:)+", re.IGNORECASE)
MAX_MB = 1000.0


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
    """Return whether a file is read: none that is hidden but Aider's, nor ChatGPT's page of its conversations.json."""
    parts = name.split("/")
    hidden = any(part.startswith(".") and part not in ("..", ".aider.chat.history.md") for part in parts)
    return name.lower().endswith((*ENDINGS, ZIP)) and not hidden and "__MACOSX" not in parts and (
        parts[-1] != "chat.html")


def read_mails(data: bytes) -> list[dict[str, Any]]:
    """Return the mails as objects; ``thread`` is the subject without "Re:".

    >>> mail = b"From x Mon Jan  1 10:00:00 2024\\nFrom: Ann <a@x.org>\\nSubject: Re: Lake\\n\\nYes.\\n"
    >>> [(mail["from"], mail["thread"], mail["text"]) for mail in read_mails(mail)]
    [('Ann', 'Lake', 'Yes.\\n')]
    """
    return [_mail(piece) for piece in _BEGIN.split(data)[1:]]


def _mail(data: bytes) -> dict[str, Any]:
    mail = message_from_bytes(data.replace(b"\n>From ", b"\nFrom "), EmailMessage, policy=policy.default)
    subject = _header(mail, "subject")
    name, address = parseaddr(_header(mail, "from"))
    return {"$mail": True, "from": name or address, "date": _header(mail, "date"), "subject": subject,
            "thread": _REPLY.sub("", subject).strip(), "text": _text(mail),
            "files": [part.get_filename() or "file" for part in mail.walk() if part.is_attachment()]}


def _header(mail: EmailMessage, name: str) -> str:
    try:
        return " ".join(str(mail[name] or "").split())
    except (ValueError, AttributeError, IndexError, TypeError):  # headers that email cannot parse
        return ""


def _text(mail: EmailMessage) -> str:
    body = mail.get_body(("plain", "html"))
    try:
        text = body.get_content() if body else ""
    except (LookupError, ValueError):  # an unknown encoding
        text = ""
    return text.replace("\r\n", "\n") if isinstance(text, str) else ""


@dataclass(frozen=True)
class ExportFile:
    """A file of an export.

    name: path inside the export, with ``/``, in which inner zips are folders. content: the value of a .json, the list
    of those of a .jsonl, .csv or .mbox, the text of others; None if it cannot be read, or its first bytes as text.
    fault: the reason, for the user. cut: whether the last line of a .jsonl was left out because it is incomplete.
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
        """The name of the folder or inner zip that holds the file, without ``.zip``; empty at the top."""
        name = PurePosixPath(self.name).parent.name
        return name[:-len(ZIP)] if name.lower().endswith(ZIP) else name


def open_export(path: Path, max_mb: float = MAX_MB) -> list[ExportFile]:
    """Read the files of an export that have one of ``ENDINGS``, also those in zips, in the order of their names.

    ``max_mb``: limit of all these files together, unpacked, in MB. A file that cannot be read keeps its fault. Raises
    MemlabError where the export as a whole cannot be read, is too large or holds no such file.
    """
    if not path.exists():
        near = nearest(path)
        raise MemlabError("there is no such file or folder", where=str(path),
                          fix=f"did you mean {near}?" if near else "")
    try:
        raw = ExportReader(path, int(max_mb * 1e6)).files()
        files = [ExportFile(name, fault=data) if isinstance(data, MemlabError) else parse(name, data)
                 for name, data in raw]  # one by one: the bytes of one are held at a time
    except OSError as fault:
        raise MemlabError(f"it cannot be read ({fault.strerror or fault})", where=str(path),
                          fix="check its permissions") from fault
    if not files:
        raise MemlabError(f"there is no file in it that ends in {', '.join(ENDINGS)}", where=str(path),
                          fix="give the export as the vendor sent it")
    return sorted(files, key=lambda file: file.name)


def parse(name: str, data: bytes) -> ExportFile:
    """Return the file with its content, or with its fault."""
    ending = PurePosixPath(name).suffix.lower()
    if ending == MAIL:
        return ExportFile(name, read_mails(data))
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as fault:
        place = f"{name}, line {data[:fault.start].count(10) + 1}"
        return ExportFile(name, data[:20].decode("latin-1"), MemlabError(
            f"byte {fault.start} is not {fault.encoding.upper()}", where=place, fix="save it as UTF-8"))
    if ending in TEXTS:
        try:
            return ExportFile(name, ending == ".html" and read_page(text, name) or text)
        except MemlabError as fault:
            return ExportFile(name, fault=fault)
    if ending == ".csv":
        return ExportFile(name, list(csv.DictReader(io.StringIO(text), restkey="")))
    try:
        return _lines(name, text) if ending == ".jsonl" else ExportFile(name, load_json(text))
    except ValueError as fault:
        lines = _lines(name, text) if ending != ".jsonl" and "Extra data" in str(fault) else None
        if lines and not lines.fault and isinstance(lines.content[0], dict):
            return lines
        if ending == ".json" or not text.strip():
            return _damage(name, f"this is not JSON, or it is cut off ({str(fault)[:80]})", "copy the export again")
        return ExportFile(name, text)


def _lines(name: str, text: str) -> ExportFile:
    values = []
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        try:
            values += [load_json(line)] if line.strip() else []
        except ValueError as fault:
            if 1 < number == len(lines):  # the writer was interrupted
                return ExportFile(name, values, cut=True)
            return _damage(f"{name}, line {number}", f"this is not JSON ({str(fault)[:80]})",
                           "correct or remove the line")
    return ExportFile(name, values)


def _damage(where: str, what: str, fix: str) -> ExportFile:
    return ExportFile(where.partition(", line ")[0], fault=MemlabError(what, where=where, fix=fix))
