"""Copies and checks of a live memory: ``memlab memory backup | check | export``.

One process at a time uses a memory, so each command is refused while another process has it open; that process makes a
copy itself, with ``Memory.backup(folder)``. The commands change nothing: a damaged session is named here, and dropped
by the next use of the memory in Python.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from memlab.errors import MemlabError
from memlab.live.database import Database, is_memory, refuse_inside
from memlab.live.feedback import Votes
from memlab.live.json_lines import lines_of, write
from memlab.live.sessions import SessionRows
from memlab.runtime.clock import Clock
from memlab.runtime.help_text import Parser
from memlab.runtime.paths import expand, path_argument
from memlab.runtime.terminal import as_flags, print
from memlab.store.__main__ import info, verify

STDOUT = Path("-")
"""The file that stands for the standard output."""


@dataclass(frozen=True)
class Health:
    """What a memory holds, and what of it is damaged, a line for each part.

    counts: how many sessions, turns, earlier versions, deprecated turns and votes there are. stored: rows of the store,
    by kind and model, as ``memlab.store.__main__.info`` returns them. lost: whether a session is damaged; all other
    parts are made again. cleared: whether all that was forgotten is erased.
    """

    counts: tuple[int, int, int, int, int]
    stored: pl.DataFrame
    damaged: list[str]
    lost: bool
    cleared: bool


@contextmanager
def open_database(folder: Path) -> Iterator[Database]:
    """Hold the database of a memory; raise MemlabError if it cannot be used, or another process does."""
    database = Database(folder)
    try:
        database.open()
        yield database
    finally:
        database.close()


def check(database: Database) -> Health:
    """Read every row, segment and reply of a memory, and compare it with its digest; changes nothing.

    Raises MemlabError if the database cannot be read, or if sessions are missing.
    """
    if database.rows("PRAGMA integrity_check(1)") != [("ok",)]:
        raise database.damage_error()
    entries, lost, _ = SessionRows(database).read()
    store = database.folder / "store"
    damaged = [f"session {number}: its text does not match its digest; the next use drops it" for number in lost]
    damaged += [f"{path.relative_to(database.folder)}: it does not match its digest; what it held is computed again"
                for path in verify(store)]
    counts = (len(entries), sum(len(entry.numbers) for entry in entries),
              sum(entry.newer is not None for entry in entries), sum(len(entry.deprecated) for entry in entries),
              Votes(database).frame()["vote"].n_unique())
    return Health(counts, info(store), damaged, bool(lost), database.is_cleared())


def backup(folder: Path, out: Path) -> Health:
    """Copy a memory to a new or empty folder, and return what the copy holds; raise MemlabError if it lacks anything.

    A memory with a damaged session is not copied: its owner may want to save what is left of it.
    """
    with open_database(folder) as database:
        before = check(database)
        if before.lost:
            raise MemlabError("; ".join(before.damaged), where=str(folder),
                              fix="open the memory in Python, which drops damaged sessions; a copy by cp -r keeps them")
        database.backup(out)
    with open_database(out) as copy:
        after = check(copy)
    if after.lost or after.counts != before.counts:
        raise MemlabError("the copy is not whole: sessions are missing or damaged", where=str(out),
                          fix="remove it and copy again, to another disk if this repeats")
    return after


def export(folder: Path) -> tuple[list[str], list[int]]:
    """Return the sessions of a memory as lines that ``data=custom`` reads, and the numbers of damaged ones.

    What is not valid today is left out: earlier versions and deprecated turns. Days are those of UTC beside times with
    an offset, else of this machine.
    """
    with open_database(folder) as database:
        stored, lost, _ = SessionRows(database).read()
    return [*lines_of(stored, folder, Clock())], lost


def _show(folder: Path, health: Health) -> None:
    sessions, turns, earlier, deprecated, votes = health.counts
    print(f"{folder}: {sessions:,} sessions, {turns:,} turns")
    if earlier or deprecated or votes:
        print(f"earlier versions: {earlier:,}; deprecated turns: {deprecated:,}; votes: {votes:,}")
    for row in health.stored.iter_rows(named=True):
        print(f"{row['kind']} of {row['model']}: {row['rows']:,} rows, {row['bytes']:,} bytes")
    if not health.cleared:
        print("what was forgotten last is not erased yet, since a process was ended meanwhile; the next use erases it")
    print("\n".join(f"damaged: {line}" for line in health.damaged) or "all of it is whole")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status: 1 for damage, or if it cannot be done, 2 for a mistake in the command."""
    given = as_flags(sys.argv[1:] if arguments is None else arguments, {"memory": "--memory", "out": "--out"})
    parser = Parser(prog="memlab memory", description="Copy, check or export a live memory that no other process uses.",
                    epilog="Examples:\n\n"
                           "    memlab memory check memory=ann\n"
                           "    memlab memory backup memory=ann out=ann-copy\n"
                           "    memlab memory export memory=ann out=sessions.jsonl\n\n"
                           "While a process uses a memory, that process copies it: Memory.backup(folder).")
    parser.add_argument("command", choices=["backup", "check", "export"],
                        help="backup: a whole copy in a new folder, checked; check: compare every session, vector and "
                             "reply with its digest; export: sessions as JSON lines, as data=custom reads them, "
                             "without the earlier versions and deprecated turns that are not valid today")
    parser.add_argument("--memory", type=path_argument, required=True, help="its folder (also memory=FOLDER)")
    parser.add_argument("--out", type=path_argument, help="backup: a new folder; export: a new file, or - for standard "
                                                          "output (also out=PLACE)")
    options = parser.parse_args(given)
    if (options.out is None) != (options.command == "check"):
        parser.error("check writes nothing: leave out= away" if options.out else f"give out=, the place of the "
                     f"{options.command}")
    folder = expand(options.memory)
    if not is_memory(folder):
        parser.error(f"there is no live memory in {folder}")
    try:
        return _run(options.command, folder, options.out and expand(options.out))
    except MemlabError as error:
        print(f"memlab: {error}", file=sys.stderr)
        return 1


def _run(command: str, folder: Path, out: Path) -> int:
    if command == "export":
        lines, lost = export(folder)
        if out == STDOUT:
            for line in lines:
                print(line, secret=True)
        else:
            refuse_inside(out, folder)
            write(lines, out)
            print(f"{out}: {len(lines):,} sessions")
        for number in lost:
            print(f"memlab: session {number} is damaged and left out", file=sys.stderr)
        return int(bool(lost))
    if command == "backup":
        health = backup(folder, out)
    else:
        with open_database(folder) as database:
            health = check(database)
    _show(out or folder, health)
    return int(bool(health.damaged))


if __name__ == "__main__":
    raise SystemExit(main())
