"""Migration of a memory of format 1 (JSON lines and records of vectors) to the database, in one step.

The database is made under a temporary name and renamed when it is whole; the old files are deleted after that. A
process that is killed before the rename leaves the old memory, and one that is killed later leaves old files that the
next opening deletes.
"""

from __future__ import annotations

import fcntl
import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path

import numpy as np

from memlab.errors import MemlabError
from memlab.live.accesses import ADD
from memlab.live.database import FILE, Database
from memlab.live.row_files import data_end, row_digest
from memlab.live.session_rows import SessionRows
from memlab.live.sessions import Entry
from memlab.live.vector_file import FOLDER, SUFFIX, VectorFile
from memlab.runtime.checked_lines import decode, lines
from memlab.runtime.files import TEMPORARY, open_plain, os_errors

LOG = "memory.jsonl"
OLD = (LOG, "accesses.jsonl", "damaged.jsonl", "lock", f"*{TEMPORARY}", f".{LOG}.*{TEMPORARY}",
       f"{FOLDER}/*/*.rows")
"""Files of format 1. The log is deleted last: while it is there, the others are looked for."""

_BUILT = f"{FILE}{TEMPORARY}"


def is_memory(folder: Path) -> bool:
    """Return whether a folder holds a live memory, of this format or of format 1."""
    return any((folder / name).is_file() for name in (FILE, LOG))


def migrate(folder: Path) -> None:
    """Turn a memory of format 1 into a database, or finish that; raise MemlabError if it is unreadable or in use."""
    if "\0" in str(folder) or not (folder / LOG).is_file():
        return
    with os_errors("the memory cannot be brought to the new format", folder,
                   fix="check its permissions, or free some space there", kept="it is as it was"):
        if not os.access(folder, os.W_OK):
            raise MemlabError("this memory is of format 1, and cannot be brought to a newer one where it is",
                              where=str(folder), fix="open it once where its folder can be written")
        with _lock(folder):
            if not (folder / FILE).exists():
                _build(folder)
            for pattern in (*OLD[1:], LOG):
                for path in folder.glob(pattern):
                    path.unlink()


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Keep processes of a memlab that knows format 1 alone away, and others that migrate."""
    with (folder / "lock").open("a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            who = file.read(200).decode("utf-8", "replace").strip() or "another process"
            raise MemlabError(f"this memory is in use by {who}", where=str(folder),
                              fix="close it there (Memory.close()), or end that process: one at a time") from None
        yield


def _build(folder: Path) -> None:
    entries, damaged = _entries(folder)
    if not entries and any(folder.glob(f"{FOLDER}/*/*.rows")):
        raise MemlabError(f"{LOG} holds no session, but the vectors of sessions are there", where=str(folder),
                          fix=f"bring {LOG} back from a copy, or delete the folder store")
    if damaged:
        warnings.warn(f"{folder / LOG}: line {', '.join(map(str, damaged))} is damaged (its process was ended while it "
                      "wrote, or the disk is faulty) and is dropped", stacklevel=2)
    for path in (folder / _BUILT, folder / f"{_BUILT}-wal"):
        path.unlink(missing_ok=True)
    database = Database(folder, _BUILT)
    database.open()
    try:
        with database.transaction():
            SessionRows(database).write(e for e in entries if e.session is not None)
            database.run("UPDATE counter SET next = ?", (max((e.id for e in entries), default=-1) + 1,))
            database.run(ADD, *_accesses(folder, {(e.id, n) for e in entries for n in e.numbers}))
        for path in sorted(folder.glob(f"{FOLDER}/*/*.rows")):
            _vectors(database, path)
        with database.transaction():  # durable: vectors are written with less care
            pass
    finally:
        database.close()
    os.replace(folder / _BUILT, folder / FILE)
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _entries(folder: Path) -> tuple[list[Entry], list[int]]:
    """Return the entries of the log by number, and the numbers of its damaged lines."""
    entries: dict[int, Entry] = {}
    damaged, whole = [], 0
    with open_plain(folder / LOG) as file:
        for number, line in enumerate(lines(file), start=1):
            row = decode(line)
            if row is None:
                damaged.append(number)
                continue
            whole += 1
            if row.get("format", 1) != 1:
                raise MemlabError(f"this memory is of format {row['format']}, which this version does not know",
                                  where=str(folder), fix="use the memlab that wrote it, or a newer one")
            if "id" in row:
                entries[row["id"]] = Entry.of_row(row)
    if len(damaged) > 1 and not whole:
        raise MemlabError(f"{LOG} is no live memory", where=str(folder), fix="choose another folder")
    return [entries[number] for number in sorted(entries)], damaged


def _accesses(folder: Path, turns: set[tuple[int, int]]) -> Iterator[tuple[int, int, int, str]]:
    with suppress(FileNotFoundError), open_plain(folder / "accesses.jsonl") as file:
        for line in lines(file):
            with suppress(ValueError, KeyError, TypeError):  # a line that was cut off, or is damaged
                row = json.loads(line)
                on, times = date.fromisoformat(row["on"]).isoformat(), int(row.get("times", 1))
                yield from ((s, t, times, on) for s, t in row["turns"] if (s, t) in turns)


def _vectors(database: Database, path: Path) -> None:
    """Copy the intact records of a file of format 1: key (16 bytes), value, digest of both (8 bytes)."""
    if not (path.is_file() and path.stem.isdecimal()):
        return
    dim = int(path.stem)
    path.with_suffix(SUFFIX).unlink(missing_ok=True)
    with open_plain(path) as file:
        raw = file.read(data_end(file.fileno()))
    if len(raw) < 4 * dim:
        return
    form = np.dtype([("key", "V16"), ("value", "<f4", (dim,)), ("check", "V8")])
    records = np.frombuffer(raw, form, len(raw) // form.itemsize)
    last = {record["key"].tobytes(): record for record in records}
    intact = {key: record["value"] for key, record in last.items()
              if row_digest(key, record["value"].tobytes()) == record["check"].tobytes()}
    if intact:
        VectorFile(database, path.parent, dim).write(list(intact), list(range(len(intact))),
                                                     np.stack(list(intact.values())), "")
