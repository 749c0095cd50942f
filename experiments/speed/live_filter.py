"""Time of a question to a live memory with a filter, against one without.

    python experiments/speed/live_filter.py [--sessions 5000] [--turns 8] [--only bm25,dense,hnsw,late,late_index]

Takes ten minutes on two cores; needs no weights. Sessions belong to twenty users in turn. Vectors and token vectors are
drawn (384 and 16 numbers), texts are drawn by a Zipf law from the vocabulary of the generated lives. A question is
asked of all sessions, of one user's, and of nineteen users', each with a new filter, and again with one that was used
before, taking turns. Times are medians of ``--times`` rounds; with ``--cpu`` they are those of all threads
of the process, which other programs disturb less.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from live_memory import Drawn, vocabulary

from memlab.memory.memory import Memory, Session
from memlab.models.protocols import Floats, Ints, Role
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.stage import EmptyStage
from memlab.stages.search.dense import Dense
from memlab.stages.search.faiss_index import HNSW
from memlab.stages.search.late_index import LateIndex
from memlab.stages.search.late_interaction import WeightedLate

USERS = 20
NO_HITS = EmptyStage(writes=("hits",))


@dataclass(frozen=True)
class DrawnTokens:
    """A random unit vector for each word."""

    query_tokens: int = 12
    size: int = 16

    def identity(self) -> dict[str, Any]:
        return {"is": "drawn tokens"}

    def token_identity(self, role: Role) -> dict[str, Any]:  # noqa: ARG002
        return self.identity()

    def token_vectors(self, texts: Sequence[str], role: Role  # noqa: ARG002
                      ) -> Iterator[tuple[Ints, list[Ints], list[Floats]]]:
        table = np.random.default_rng(0).standard_normal((1 << 14, self.size)).astype(np.float32)
        table /= np.linalg.norm(table, axis=1, keepdims=True)
        ids = [np.array([zlib.crc32(word.encode()) % len(table) for word in text.split()], np.int64) for text in texts]
        yield np.arange(len(texts)), ids, [table[some] for some in ids]


def pipelines() -> dict[str, Pipeline]:
    """A pipeline for each retriever, alone."""
    none = Pipeline(dense=NO_HITS, lexical=NO_HITS)
    return {"bm25": Pipeline(dense=NO_HITS),
            "dense": none.replace(dense=Dense(embedder=Drawn())),
            "hnsw": none.replace(dense=Dense(embedder=Drawn(), index=HNSW(), depth=100)),
            "late": none.replace(late=WeightedLate(matcher=DrawnTokens())),
            "late_index": none.replace(late=LateIndex(matcher=DrawnTokens()))}


def sessions(count: int, turns: int, texts: Iterator[str]) -> list[Session]:
    """Return sessions of the users in turn."""
    return [Session(datetime(2020, 1, 1) + timedelta(hours=3 * n),
                    [(("user", "assistant")[t % 2], next(texts)) for t in range(turns)], user=f"user {n % USERS}")
            for n in range(count)]


def texts(length: int) -> Iterator[str]:
    """Yield random texts of so many words."""
    draw, words = np.random.default_rng(0), np.array(vocabulary())
    share = 1 / np.arange(1, len(words) + 1)
    while True:
        yield from (" ".join(row) for row in draw.choice(words, (4096, length), p=share / share.sum()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=5000)
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--only", default=",".join(pipelines()))
    args = parser.parse_args()
    clock = time.process_time if args.cpu else time.perf_counter
    drawn, questions = sessions(args.sessions, args.turns, texts(12)), texts(8)
    print(f"{args.sessions * args.turns:,} turns of 12 words, {USERS} users\n")
    columns = ("search", "first question", "all", "1 user of 20", "again", "19 users of 20", "again")
    print(f"| {' | '.join(columns)} |\n|---{'|--:' * (len(columns) - 1)}|")
    for name in args.only.split(","):
        with tempfile.TemporaryDirectory() as folder, Memory(folder, pipelines()[name]) as memory:
            memory.add_many(drawn)

            def ask(users: Sequence[int] | None = None, memory: Memory = memory) -> float:
                where = None if users is None else {"user": [f"user {user}" for user in users]}
                start = clock()
                memory.search(next(questions), k=10, where=where)
                return clock() - start

            first, rows = ask(), []
            for n in range(args.times):
                one, most = [n], [user for user in range(USERS) if user != n]
                rows.append([ask(users) for users in (None, one, one, most, most)])
            cells = [first, *np.median(rows, axis=0)]
        print(f"| {name} | " + " | ".join(f"{1000 * cell:,.0f} ms" for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
