"""Parsed files of an export: the values of JSON, CSV, mails and pages of My Activity, the text of others, or an error.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import parseaddr
from pathlib import Path, PurePosixPath
from typing import Any

from memlab.data.chats.archives import ENDINGS, TEXTS, ZIP, ExportReader
from memlab.data.chats.gemini import is_page, read_page
from memlab.support.errors import MemlabError
from memlab.support.foreign import load_json
from memlab.support.paths import nearest

MAIL = ".mbox"
_BEGIN = re.compile(rb"^From [^\n]*\d{4}[^\n]*\n", re.MULTILINE)
_REPLY = re.compile(r"^(?:\s*(?:re|fwd?|aw|wg|tr|sv|antw|r|i)\s*:)+", re.IGNORECASE)
MAX_MB = 1000.0


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

    @property
    def ending(self) -> str:
        """The ending of the name in small letters, with its dot."""
        return PurePosixPath(self.name).suffix.lower()


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
    if ending == ".html" and is_page(text):
        try:
            return ExportFile(name, read_page(text, name))
        except MemlabError as fault:
            return ExportFile(name, fault=fault)
    if ending in TEXTS:
        return ExportFile(name, text)
    if ending == ".csv":
        return ExportFile(name, list(csv.DictReader(io.StringIO(text))))
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
