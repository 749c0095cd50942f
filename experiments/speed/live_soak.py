"""Endurance of a live memory: threads that search, add and forget, backups, and a process that is killed each minute.

    python experiments/speed/live_soak.py [--minutes 30] [--sessions 400] [--folder DIR]

Two memories are used for as many minutes as given. In the process of each, eight threads search, two add sessions, one
forgets some and prunes others, and one makes a backup each minute. The process of the first memory lives to the end;
its resident memory is read after a minute and at the end. That of the second is killed (SIGKILL) each minute, at a
random moment, and another one opens the memory. The number of sessions stays near ``--sessions``.

A session is acknowledged when ``add`` has returned, and forgotten when ``forget`` or ``prune`` has. After each kill,
and in each backup, this script opens the memory. An acknowledged session is lost if it is not there, unless it is old
enough to be pruned or somebody has begun to forget it. A forgotten one is wrongly kept if it is there by name, or by a
word of its text in any file. The exit status is 1 if there is one of either, or if a thread fails.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import re
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psutil
from live import Words

from memlab.memory.memory import Memory, Session
from memlab.pipeline.pipeline import Pipeline
from memlab.stages.search.bm25 import BM25
from memlab.stages.search.dense import Dense
from memlab.stages.search.late_interaction import WeightedLate
from memlab.stages.write.prune import Age

NOW, OLD, NEW = "2030-01-01", "2020-01-01", "2029-12-01"
"""The day of questions, and the days of sessions that pruning forgets and of those that it keeps."""

VOCABULARY = tuple(f"word{n}" for n in range(300))
MARK = re.compile(rb"zebra[0-9x]+q")
SEARCHING, ADDING = 8, 2


def pipeline() -> Pipeline:
    return Pipeline(lexical=BM25(), dense=Dense(embedder=Words(size=64)), late=WeightedLate(matcher=Words(size=64)),
                    prune=Age(days=90))


def work(folder: str, run: int, sessions: int, each: float, report: Connection) -> None:
    """Use a memory in this process until it is killed, or told to end by the file ``end`` beside it."""
    memory, lock, numbers = Memory(Path(folder), pipeline()), threading.Lock(), dict[int, str]()
    end, pruned = Path(f"{folder}.end"), set[int]()

    def tell(kind: str, *values: Any) -> None:
        with lock:
            report.send((kind, values))

    def again(step: Callable[[random.Random, int], None], seed: int) -> threading.Thread:
        def loop() -> None:
            draw, count = random.Random(f"{run}/{seed}"), 0
            try:
                while not end.exists():
                    step(draw, count)
                    count += 1
            except BaseException:  # noqa: BLE001  (whatever it is, the soak has found it)
                tell("failed", traceback.format_exc())

        return threading.Thread(target=loop)

    def search(draw: random.Random, count: int) -> None:
        memory.search(" ".join(draw.choices(VOCABULARY, k=3)), NOW)
        if count % 20 == 19:
            tell("searched", 20)

    def add(draw: random.Random, count: int) -> None:
        mark = f"zebra{run}x{threading.get_ident()}x{count}q"
        day = OLD if draw.random() < 0.2 else NEW
        number = memory.add(Session(day, [("user", f"{mark} {' '.join(draw.choices(VOCABULARY, k=30))}")], mark))
        with lock:
            if number not in pruned:  # meanwhile
                numbers[number] = mark
        tell("added", mark, day == OLD)
        time.sleep(0.02 if len(numbers) < sessions else 0.5)

    def forget(draw: random.Random, count: int) -> None:
        with lock:
            known = sorted(numbers)
        if count % 10 == 9:
            gone = memory.prune(NOW)["session"].to_list()
            with lock:
                pruned.update(gone)
        else:
            gone = draw.sample(known, min(1 + len(known) // 100, len(known)))
            for number in gone:
                tell("forgetting", numbers[number])
                memory.forget(number)
        for number in gone:
            with lock:
                mark = numbers.pop(number, "")
            tell("forgotten", mark)
        time.sleep(0.2 if len(numbers) >= sessions else 2.0)

    def back_up(_: random.Random, count: int) -> None:
        time.sleep(each * 0.6)
        copy = f"{folder}.copy{run}.{count}"
        tell("copying", copy)
        memory.backup(copy)
        tell("copied", copy)

    rows = memory.list()
    numbers |= zip(rows["session"].to_list(), rows["name"].to_list())
    tell("opened", len(numbers))
    steps = [search] * SEARCHING + [add] * ADDING + [forget, back_up]
    threads = [again(step, seed) for seed, step in enumerate(steps)]
    for thread in threads:
        thread.daemon = True
        thread.start()
    for thread in threads[:-1]:  # the last may wait for a minute
        thread.join()
    memory.close()


@dataclass
class Ledger:
    """What the processes of one memory have acknowledged, and what was found in it and its copies.

    added: acknowledged sessions. leaving: those that pruning forgets, and those that somebody began to forget.
    """

    folder: Path
    added: set[str] = field(default_factory=set)
    leaving: set[str] = field(default_factory=set)
    forgotten: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    before: dict[str, tuple[set[str], set[str]]] = field(default_factory=dict)

    def read(self, kind: str, values: Sequence[Any]) -> None:
        """Take one report of a process."""
        if kind == "added":
            self.added.add(values[0])
            self.leaving |= {values[0]} if values[1] else set()
        elif kind == "forgetting":
            self.leaving.add(values[0])
        elif kind == "forgotten":
            self.forgotten.add(values[0])
        elif kind == "copying":
            self.before[values[0]] = {*self.added}, {*self.forgotten}
        elif kind == "copied":
            there, gone = self.before.pop(values[0])
            self.compare(Path(values[0]), there, gone, "backups")
            shutil.rmtree(values[0])
        elif kind == "failed":
            self.faults.append(values[0])
        self.counts[kind] += values[0] if kind == "searched" else 1

    def compare(self, folder: Path, there: set[str], gone: set[str], what: str) -> None:
        """Open a memory and count what is lost, and what is wrongly kept."""
        with Memory(folder, pipeline()) as memory:
            names = set(memory.list()["name"])
            memory.search("word1 word2", NOW)
            held = {word.decode() for path in folder.rglob("*") if path.is_file()
                    for word in MARK.findall(path.read_bytes())}
        lost, kept = there - self.leaving - names, gone & (names | held)
        self.counts.update({what: 1, "lost": len(lost), "wrongly kept": len(kept)})
        self.faults += [f"{folder}: lost {sorted(lost)[:5]}"] * bool(lost)
        self.faults += [f"{folder}: wrongly kept {sorted(kept)[:5]}"] * bool(kept)


class Running:
    """A process that uses a memory, and the thread that reads its reports."""

    def __init__(self, ledger: Ledger, run: int, sessions: int, each: float) -> None:
        self._ledger, context = ledger, multiprocessing.get_context("spawn")
        receiver, sender = context.Pipe(duplex=False)
        self.process: BaseProcess = context.Process(target=work, args=(str(ledger.folder), run, sessions, each, sender))
        self.process.start()
        sender.close()
        self._thread = threading.Thread(target=self._follow, args=(receiver,))
        self._thread.start()

    def _follow(self, receiver: Connection) -> None:
        with suppress(EOFError, OSError):
            while True:
                self._ledger.read(*receiver.recv())

    def rss(self) -> int:
        """Resident memory in MB."""
        return psutil.Process(self.process.pid).memory_info().rss >> 20

    def wait(self, kill: bool = False) -> None:
        """Wait for the end of the process, which is killed or has been told to end, and for its last report."""
        if kill:
            self.process.kill()
        self.process.join()
        self._thread.join()
        if self.process.exitcode != (-9 if kill else 0):
            self._ledger.faults.append(f"a process ended with status {self.process.exitcode}")


def soak(folder: Path, minutes: float, sessions: int) -> list[Ledger]:
    """Use two memories for some minutes; return what was found in each."""
    each, end = min(60.0, minutes * 15), time.monotonic() + minutes * 60
    steady, killed = Ledger(folder / "steady"), Ledger(folder / "killed")
    lasting, rss, draw = Running(steady, 0, sessions, each), 0, random.Random(0)
    for run in range(1, sys.maxsize):
        running = Running(killed, run, sessions, each)
        time.sleep(max(0.0, min(each * draw.uniform(0.7, 1.3), end - time.monotonic())))
        rss = rss or lasting.rss()
        running.wait(kill=True)
        killed.compare(killed.folder, {*killed.added}, {*killed.forgotten}, "kills")
        for copy in (*folder.glob("killed.copy*"), *folder.glob(".killed.copy*")):  # a backup that was under way
            shutil.rmtree(copy)
        print(f"{max(0.0, end - time.monotonic()) / 60:.1f} minutes left: {dict(killed.counts)}", flush=True)
        if time.monotonic() >= end:
            break
    steady.counts.update({"MB at the start": rss, "MB at the end": lasting.rss()})
    (folder / "steady.end").touch()
    lasting.wait()
    steady.compare(steady.folder, {*steady.added}, {*steady.forgotten}, "closed")
    return [steady, killed]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--sessions", type=int, default=400)
    parser.add_argument("--folder", type=Path, help="where the memories lie; a temporary one unless given")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as place:
        ledgers = soak(Path(place), args.minutes, args.sessions)
    columns = ("acknowledged", "forgotten", "lost", "wrongly kept", "kills", "backups", "searched", "MB at the start",
               "MB at the end")
    print(f"\n| memory | {' | '.join(columns)} |\n|---|{'--:|' * len(columns)}")
    for ledger in ledgers:
        ledger.counts["acknowledged"] = len(ledger.added)
        values = (f"{ledger.counts[name]:,}" if name in ledger.counts or "MB" not in name else "" for name in columns)
        print(f"| {ledger.folder.name} | {' | '.join(values)} |")
    faults = [fault for ledger in ledgers for fault in ledger.faults]
    print(*faults, sep="\n")
    return int(bool(faults))


if __name__ == "__main__":
    raise SystemExit(main())
