"""Twenty users in one live memory with a filter, or in twenty memories; and sessions added at once, or one by one.

    python experiments/speed/live_users.py [--sessions 10000] [--users 20] [--turns 4] [--words 30] [--search words]

Takes some ten minutes on two cores. Each form runs in a process of its own, on the same drawn sessions as
``live_memory.py``, with random vectors and BM25 (``drawn``) or BM25 alone (``words``). The first table is of users:
the time to add all sessions (``add_many``), to ask each user's first question with all memories open, and a later one
(median); the first question after each addition of one session (median of the users); the process's memory then, and
the size on disk. The second is of additions: all sessions by ``add_many``, and by ``add``. Additions have two times, by
the clock (with the waits for the disk, and for other programs) and by processor; questions are told by processor.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median

import numpy as np
import psutil
from live_memory import PIPELINES, vocabulary

from memlab.memory.memory import Memory, Session

ROUNDS = 3
"""Later questions of each user."""


class Drawing:
    """Texts of words drawn by a Zipf law, and sessions of users who take turns."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self._rng = np.random.default_rng(0)
        self._words = np.array(vocabulary())
        share = 1 / np.arange(1, len(self._words) + 1)
        self._share = share / share.sum()

    def text(self, count: int) -> str:
        return " ".join(self._rng.choice(self._words, count, p=self._share))

    def session(self, n: int) -> Session:
        turns = [(("user", "assistant")[t % 2], self.text(self.args.words)) for t in range(self.args.turns)]
        return Session(datetime(2020, 1, 1) + timedelta(minutes=30 * n), turns, user=f"user {n % self.args.users}")


class Watch:
    """Seconds since it was made, by the clock and by processor."""

    def __init__(self) -> None:
        self._clock, self._processor = time.perf_counter(), time.process_time()

    def processor(self) -> float:
        return time.process_time() - self._processor

    def both(self) -> str:
        return f"{time.perf_counter() - self._clock:.1f} s, {self.processor():.1f} s"


def size(folder: Path) -> float:
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 1e6


def users(draw: Drawing, form: str, folder: Path) -> Iterator[str]:
    """Yield the cells of a row of the first table."""
    args = draw.args
    names = [f"user {n}" for n in range(args.users)]
    sessions = [draw.session(n) for n in range(args.sessions)]
    before = psutil.Process().memory_info().rss
    with ExitStack() as stack:
        pipeline = PIPELINES[args.search]
        if form == "one memory":
            one = stack.enter_context(Memory(folder, pipeline()))
            memories = dict.fromkeys(names, one)
        else:
            memories = {name: stack.enter_context(Memory(folder / name, pipeline())) for name in names}
        watch = Watch()
        if form == "one memory":
            one.add_many(sessions)
        else:
            for name in names:
                memories[name].add_many([session for session in sessions if session.user == name])
        yield watch.both()

        def ask(name: str) -> float:
            question = draw.text(8)
            watch = Watch()
            memories[name].search(question, where={"user": name} if form == "one memory" else None)
            return watch.processor()

        first = [ask(name) for name in names]
        yield f"{first[0]:.2f} s, {median(first[1:]):.3f} s"
        yield f"{median(ask(name) for _ in range(ROUNDS) for name in names):.3f} s"
        changed = []
        for n, name in enumerate(names):
            memories[name].add(draw.session(args.sessions + n))
            changed.append(ask(name))
        yield f"{median(changed):.3f} s"
        yield f"{(psutil.Process().memory_info().rss - before) / 1e6:,.0f} MB"
        yield f"{size(folder):,.0f} MB"


def additions(draw: Drawing, form: str, folder: Path) -> Iterator[str]:
    """Yield the cells of a row of the second table."""
    sessions = [draw.session(n) for n in range(draw.args.sessions)]
    with Memory(folder, PIPELINES[draw.args.search]()) as memory:
        len(memory)
        before = psutil.Process().memory_info().rss
        watch = Watch()
        if form == "add_many":
            memory.add_many(sessions)
        else:
            for session in sessions:
                memory.add(session)
        yield watch.both()
        watch = Watch()
        memory.search(draw.text(8))
        yield f"{watch.processor():.2f} s"
        yield f"{(psutil.Process().memory_info().rss - before) / 1e6:,.0f} MB"
        yield f"{size(folder):,.0f} MB"


ADD = "add all: by the clock, by processor"

TABLES = {
    users: ("users in", (ADD, "first question: of the first user, of the others", "later question",
                         "first question after an addition", "memory (RSS)", "on disk"),
            ("one memory", "a memory each")),
    additions: ("added by", (ADD, "first question", "memory (RSS)", "on disk"), ("add_many", "add"))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--words", type=int, default=30)
    parser.add_argument("--search", choices=("drawn", "words"), default="drawn")
    parser.add_argument("--form", help=argparse.SUPPRESS)
    args = parser.parse_args()
    for table, (title, heads, forms) in TABLES.items():
        if args.form in forms:
            with tempfile.TemporaryDirectory() as folder:
                print(f"| {args.form} | {' | '.join(table(Drawing(args), args.form, Path(folder)))} |", flush=True)
        elif not args.form:
            print(f"| {title} | {' | '.join(heads)} |\n|---|{'--:|' * len(heads)}", flush=True)
            for form in forms:
                subprocess.run([sys.executable, __file__, *sys.argv[1:], "--form", form], check=True)
            print()


if __name__ == "__main__":
    main()
