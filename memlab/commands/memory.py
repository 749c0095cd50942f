"""A check of a live memory: ``memlab memory check``.

One process at a time uses a memory, so the check is refused while another process has it open. It changes nothing: a
damaged session is named here, and dropped by the next use of the memory in Python.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from memlab.commands.store import info, verify
from memlab.memory.database import Database, is_memory
from memlab.memory.feedback import Votes
from memlab.memory.sessions import SessionRows
from memlab.support.errors import MemlabError
from memlab.support.help_text import Parser
from memlab.support.paths import expand, path_argument
from memlab.support.terminal import as_flags, print
from memlab.support.text.display import plural


def check(folder: Path) -> tuple[list[str], list[str]]:
    """Read every row, segment and reply of a memory, and compare it with its digest; changes nothing.

    Returns lines about what it holds, with earlier versions and deprecated turns, and a line for each damaged part.
    Raises MemlabError if the database cannot be read, or if sessions are missing.
    """
    database, store = Database(folder), folder / "store"
    try:
        database.open()
        if database.rows("PRAGMA integrity_check(1)") != [("ok",)]:
            raise database.damage_error()
        entries, lost, _ = SessionRows(database).read()
        votes, is_cleared = Votes(database).frame()["vote"].n_unique(), database.is_cleared()
    finally:
        database.close()
    turns, ended = (sum(len(part) for part in parts) for parts in (
        [entry.numbers for entry in entries], [entry.deprecated for entry in entries]))
    earlier = sum(entry.newer is not None for entry in entries)
    held = [f"{folder}: {plural(len(entries), 'session')}, {plural(turns, 'turn')}",
            f"earlier versions: {earlier:,}; deprecated turns: {ended:,}; votes: {votes:,}"]
    held += [f"{row['kind']} of {row['model']}: {row['rows']:,} rows, {row['bytes']:,} bytes"
             for row in info(store).iter_rows(named=True)]
    if not is_cleared:
        held.append("what was forgotten last is not erased yet, since a process was ended; the next use erases it")
    damaged = [f"session {number}: its text does not match its digest; the next use drops it" for number in lost]
    return held, damaged + [f"{path.relative_to(folder)}: it does not match its digest; what it held is computed again"
                            for path in verify(store)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 1 for damage or a fault, 2 for a mistake in the command."""
    given = as_flags(sys.argv[1:] if arguments is None else arguments, {"memory": "--memory"})
    parser = Parser(prog="memlab memory", description="Check a live memory that no other process uses: compare every "
                    "session, vector and reply with its digest.",
                    epilog="Example:\n\n    memlab memory check memory=ann\n\n"
                           "Memory.backup(folder) copies a memory, and Memory.export(file) writes its sessions.")
    parser.add_argument("command", choices=["check"])
    parser.add_argument("--memory", type=path_argument, required=True, help="its folder (also memory=FOLDER)")
    folder = expand(parser.parse_args(given).memory)
    if not is_memory(folder):
        parser.error(f"there is no live memory in {folder}")
    try:
        held, damaged = check(folder)
    except MemlabError as error:
        print(f"memlab: {error}", file=sys.stderr)
        return 1
    print("\n".join(held))
    print("\n".join(f"damaged: {line}" for line in damaged) or "all of it is whole")
    return int(bool(damaged))


if __name__ == "__main__":
    raise SystemExit(main())
