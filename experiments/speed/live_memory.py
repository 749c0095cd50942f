"""Speed and size of a live memory while 10,000 sessions are added to it one by one.

    python experiments/speed/live_memory.py [--sessions 10000] [--turns 4] [--words 30] [--search drawn|minilm|words]

Takes a minute or two with ``drawn`` (random vectors of MiniLM's length, which need no encoder, and BM25: the cost of
the memory itself) and ``words`` (BM25 alone), half an hour on two cores with ``minilm``. Turns are drawn from the
vocabulary of the generated lives by a Zipf law, so that no two texts are equal and no encoding is reused. After every
tenth of the sessions it prints the time of an addition over the last hundred (median and longest), the time of the next
question (which first merges the new sessions) and of a second one, the process's memory, and the size on disk. At the
end it prints the time to load the memory in another process.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from memlab.data.synthetic.dataset import Synthetic
from memlab.memory.memory import Memory, Session
from memlab.models.protocols import Floats, Ints, Role
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.stage import EmptyStage
from memlab.stages.search.dense import Dense


@dataclass(frozen=True)
class Drawn:
    """Random vectors, seeded by each text's digest."""

    size: int = 384

    def identity(self) -> dict[str, Any]:
        return {"is": "drawn", "size": self.size}

    def dim(self) -> int:
        return self.size

    def truncated(self, texts: Sequence[str], role: Role) -> np.ndarray:  # noqa: ARG002
        return np.zeros(len(texts), bool)

    def encode(self, texts: Sequence[str], role: Role) -> Iterator[tuple[Ints, Floats]]:  # noqa: ARG002
        seeds = [int.from_bytes(hashlib.blake2b(t.encode(), digest_size=8).digest()) for t in texts]
        vectors = np.stack([np.random.default_rng(s).standard_normal(self.size, np.float32) for s in seeds])
        yield np.arange(len(texts)), vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


PIPELINES = {"drawn": lambda: Pipeline(dense=Dense(embedder=Drawn())), "minilm": Pipeline,
             "words": lambda: Pipeline(dense=EmptyStage(writes=("hits",)))}


def load_again(folder: str, search: str, question: str) -> None:
    """Load a memory and ask it, as a new process would."""
    with Memory(folder, PIPELINES[search]()) as memory:
        start = time.perf_counter()
        count = len(memory)
        load_seconds = time.perf_counter() - start
        memory.search(question)
        print(f"loaded in another process: {count:,} sessions in {load_seconds:.2f} s, first question "
              f"{time.perf_counter() - start - load_seconds:.2f} s")


def vocabulary() -> list[str]:
    texts = Synthetic().load()["texts"]["text"].str.to_lowercase().str.extract_all(r"\w\w+").explode()
    return sorted(texts.drop_nulls().unique().to_list())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--words", type=int, default=30)
    parser.add_argument("--search", choices=PIPELINES, default="drawn")
    parser.add_argument("--again", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.again:
        load_again(args.again[0], args.search, args.again[1])
        return
    rng = np.random.default_rng(0)
    words = np.array(vocabulary())
    share = 1 / np.arange(1, len(words) + 1)
    share /= share.sum()

    def random_text(count: int) -> str:
        return " ".join(rng.choice(words, count, p=share))

    def session(n: int) -> Session:
        turns = [(("user", "assistant")[t % 2], random_text(args.words)) for t in range(args.turns)]
        return Session(datetime(2020, 1, 1) + timedelta(hours=3 * n), turns)

    with tempfile.TemporaryDirectory() as folder:
        with Memory(folder, PIPELINES[args.search]()) as memory:
            memory.search("warm")
            print(f"{len(words):,} words; {args.turns} turns of {args.words} words per session; "
                  f"--search {args.search}\n")
            print("| sessions | add, median | longest of 100 additions | first question | second question "
                  "| memory (RSS) | on disk |")
            print("|--:|--:|--:|--:|--:|--:|--:|")
            times: list[float] = []
            steps = {min(100, args.sessions), *(args.sessions * i // 10 for i in range(1, 11))}
            for n in range(1, args.sessions + 1):
                one = session(n)
                start = time.perf_counter()
                memory.add(one)
                times.append(time.perf_counter() - start)
                if n in steps:
                    question_seconds = []
                    for _ in range(2):
                        question = random_text(8)
                        start = time.perf_counter()
                        memory.search(question)
                        question_seconds.append(time.perf_counter() - start)
                    last = 1000 * np.array(times[-100:])
                    resident = psutil.Process().memory_info().rss / 1e6
                    size = sum(p.stat().st_size for p in Path(folder).rglob("*") if p.is_file()) / 1e6
                    print(f"| {n:,} | {np.median(last):.1f} ms | {last.max():.0f} ms | {question_seconds[0]:.2f} s "
                          f"| {question_seconds[1]:.2f} s | {resident:,.0f} MB | {size:.0f} MB |", flush=True)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        print(f"\n{args.sessions:,} additions in {sum(times):.0f} s; peak memory {peak:,.0f} MB", flush=True)
        load = [sys.executable, __file__, "--search", args.search, "--again", folder, random_text(8)]
        subprocess.run(load, check=True)


if __name__ == "__main__":
    main()
