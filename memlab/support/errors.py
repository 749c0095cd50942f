"""Errors that a user reads: what was wrong, where, what was expected and how to fix it."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

HIDDEN: set[str] = set()
"""Values that no message shows: those that a configuration took from the environment (``memlab.support.redaction``)."""


_STEERING = ((0, 8), (11, 31), (127, 159), (0x202A, 0x202E), (0x2066, 0x2069))
_ESCAPES = {code: ascii(chr(code))[1:-1] for first, last in _STEERING for code in range(first, last + 1)}
"""Control characters and marks of direction, by which a name in a message could steer a terminal, as they are shown."""


def hide(text: str) -> str:
    """Return a text without the hidden values."""
    for value in sorted(HIDDEN, key=lambda value: (-len(value), value)):  # a part after the whole
        text = text.replace(value, "***")
    return text


class MemlabError(Exception):
    """A fault that the user can mend; commands print it without a traceback.

    >>> print(MemlabError("date is not a date", where="lives.jsonl, line 3, field said_on", fix="write 2023-05-20"))
    lives.jsonl, line 3, field said_on: date is not a date. Fix: write 2023-05-20
    """

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        self.what, self.where, self.fix = (hide(part).translate(_ESCAPES) for part in (what, where, fix))
        text = f"{self.where}: {self.what}" if where else self.what
        super().__init__(f"{text}. Fix: {self.fix}" if fix else text)


class MissingFiles(MemlabError):
    """The files of a model are not on this machine and could not be fetched; a plan goes on without them."""


class Faults(MemlabError):
    """Several faults found in one pass, shown together."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = [hide(fault).translate(_ESCAPES) for fault in faults]
        lines = "\n".join(f"  * {fault}" for fault in self.faults)
        count = f"{len(self.faults)} fault" + ("s" if len(self.faults) != 1 else "")
        super().__init__(f"{count}:\n{lines}")


class DiskFault(MemlabError):
    """A file or folder that cannot be written; what was there before is as it was."""


ELSEWHERE = "choose another place"
"""The way out of a fault of a disk, where no setting says more."""

_FULL = {errno.ENOSPC: ("the disk is full", "free some space there"),
         errno.EDQUOT: ("the disk quota is used up", "free some space there"),
         errno.EFBIG: ("the limit on file sizes is reached", "raise it (ulimit -f)")}
_FAULTS = {
    **_FULL,
    **dict.fromkeys((errno.EACCES, errno.EPERM), ("permission denied", "allow reading and writing there")),
    **dict.fromkeys((errno.EEXIST, errno.ENOTDIR), ("a file is there, where a folder is needed", "move the file away")),
    errno.EISDIR: ("a folder is there, where a file is needed", "move the folder away"),
    errno.ENOENT: ("its folder is not there, and cannot be made", "make the folder"),
    errno.EROFS: ("the disk is read-only", "make it writable"),
    errno.EIO: ("the disk has an error", "check the disk"),
    errno.ESTALE: ("the network disk was changed meanwhile", "wait a moment"),
    errno.ENAMETOOLONG: ("its name is too long", "shorten it"),
    errno.ELOOP: ("its links lead in a circle", "remove the links")}
"""The system's number of a fault -> what it is, and what to do."""

_NUMBER = re.compile(r"\b(?:os error|errno) (\d+)[])]", re.IGNORECASE)
_WORDS = (
    (errno.ENOSPC, re.compile(r"database or disk is full"  # SQLite; NumPy; PyTorch
                              r"|\b\d+ requested and \d+ written|PytorchStreamWriter failed|unexpected pos \d+ vs")),
    (errno.EIO, re.compile(r"disk I/O error")),
    (errno.EACCES, re.compile(r"attempt to write a readonly database")))
"""How libraries name a fault without the system's number or words."""


def disk_fault(error: BaseException, place: Path | None = None, problem: str = "cannot be written",
               other: str = ELSEWHERE) -> DiskFault | None:
    """Return what is to be said of a fault of a disk or a folder; None for another exception.

    Args:
        error: An exception of the system, or of a library that writes by itself.
        place: What was being written. It is named in place of a file inside it, of its temporary name, or of a folder
            above it that cannot be made.
        problem: What could not be done with the place.
        other: Another way out.

    >>> print(disk_fault(OSError(errno.ENOSPC, "No space left on device", "a.json")))
    a.json: the disk is full. Fix: free some space there, or choose another place, and try again; finished work is kept
    """
    if isinstance(error, MemlabError):
        return error if isinstance(error, DiskFault) else None
    number = _fault_number(error)
    named = error.filename2 or error.filename if isinstance(error, OSError) else None
    named = os.fsdecode(named) if isinstance(named, str | bytes | os.PathLike) else ""  # not the number of an open file
    own = () if place is None else (str(place), os.path.join(place.parent, f".{place.name}."))
    if place is not None and (not named or named.startswith(own)
                              or (number == errno.ENOENT and place.is_relative_to(named))):
        what, where = f"{problem}: ", str(place)
    elif number in _FULL or (isinstance(error, OSError) and number in _FAULTS and number != errno.ENOENT):
        what, where = "", named or "the output, or a file"
    else:
        return None
    if number not in _FAULTS and not named:  # of a connection, or of no disk at all
        return None
    reason, remedy = _FAULTS.get(number) or (os.strerror(number), "check the disk")
    return DiskFault(what + reason, where=where, fix=f"{remedy}, or {other}, and try again; finished work is kept")


def _fault_number(error: BaseException) -> int:
    """Return the system's number of a fault, from an exception or the full disk behind it; 0 where there is none."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    behind = error.__cause__ or error.__context__
    if behind is not None and (number := _fault_number(behind)) in _FULL:
        return number
    text = str(error)
    if (found := _NUMBER.search(text)) and int(found[1]) != errno.ENOENT:  # perhaps of a file that was to be read
        return int(found[1])
    by_words = [number for number in _FULL if os.strerror(number) in text]
    return next(iter([*by_words, *(number for number, words in _WORDS if words.search(text))]), 0)


def natural_order(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts names with numbers as people count.

    >>> sorted(["life-10", "life-2"], key=natural_order)
    ['life-2', 'life-10']
    """
    return [(int(part), "") if part.isdecimal() and len(part) < 20 else (-1, part) for part in re.split(r"(\d+)", name)]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the nearest known name, and list the known ones when there are few.

    >>> did_you_mean("colbrt", ["colbert", "bm25"])
    "did you mean 'colbert'? (known: bm25, colbert)"
    >>> did_you_mean("xyz", ["colbert", "bm25"])
    'known: bm25, colbert'
    """
    options = sorted(set(known), key=natural_order)
    close = get_close_matches(name, options, n=1)
    listed = "known: " + ", ".join(options[:30]) + (", ..." if len(options) > 30 else "")
    return f"did you mean '{close[0]}'? ({listed})" if close else listed


def error_message(error: Exception) -> str:
    """Return one line: the message of a MemlabError or of a fault of a disk, or that of another after its name."""
    known = error if isinstance(error, MemlabError) else disk_fault(error)
    return str(known or f"{type(error).__name__}: {error}")
