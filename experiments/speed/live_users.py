"""Twenty users in one live memory with a filter, or in twenty memories.

    python experiments/speed/live_users.py [--sessions 10000] [--users 20] [--turns 4] [--words 30] [--search words]

Takes a minute or two on two cores. Each form runs in a process of its own, on the same drawn sessions, with random
vectors and BM25 (``drawn``) or BM25 alone (``words``). The table has the time to add all sessions (``add_many``), to
ask each user's first question with all memories open, and a later one (median); the first question after each addition
of one session (median of the users); the process's memory then, and the size on disk. Additions have two times, by the
clock (with the waits for the disk, and for other programs) and by processor; questions are told by processor.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from live import Drawing, Watch, resident, size
from live_memory import PIPELINES

from memlab.memory.memory import Memory

ROUNDS = 3
"""Later questions of each user."""

FORMS = ("one memory", "a memory each")


def cells(args: argparse.Namespace, folder: Path) -> Iterator[str]:
    """Yield the cells of a form's row."""
    draw, names = Drawing(args.turns, args.words, args.users), [f"user {n}" for n in range(args.users)]
    sessions, one, before = [draw.session(n) for n in range(args.sessions)], args.form == FORMS[0], resident()
    places = {name: folder if one else folder / name for name in names}
    with ExitStack() as stack:
        opened = {place: stack.enter_context(Memory(place, PIPELINES[args.search]())) for place in {*places.values()}}
        memories = {name: opened[place] for name, place in places.items()}
        watch = Watch()
        for place, memory in opened.items():
            memory.add_many([session for session in sessions if places[str(session.user)] == place])
        yield str(watch)

        def ask(name: str) -> float:
            watch, question = Watch(), draw.text()
            memories[name].search(question, where={"user": name} if one else None)
            return watch.processor()

        first = [ask(name) for name in names]
        yield f"{first[0]:.2f} s, {median(first[1:]):.3f} s"
        yield f"{median(ask(name) for _ in range(ROUNDS) for name in names):.3f} s"
        changed = []
        for n, name in enumerate(names):
            memories[name].add(draw.session(args.sessions + n))
            changed.append(ask(name))
        yield f"{median(changed):.3f} s"
        yield f"{resident() - before:,.0f} MB"
        yield f"{size(folder):,.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--words", type=int, default=30)
    parser.add_argument("--search", choices=("drawn", "words"), default="drawn")
    parser.add_argument("--form", choices=FORMS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.form:
        with tempfile.TemporaryDirectory() as folder:
            print(f"| {args.form} | {' | '.join(cells(args, Path(folder)))} |", flush=True)
        return
    heads = ("users in", "add all", "first question: of the first user, of the others", "later question",
             "first question after an addition", "memory (RSS)", "on disk")
    print(f"| {' | '.join(heads)} |\n|---|{'--:|' * (len(heads) - 1)}", flush=True)
    for form in FORMS:
        subprocess.run([sys.executable, __file__, *sys.argv[1:], "--form", form], check=True)


if __name__ == "__main__":
    main()
