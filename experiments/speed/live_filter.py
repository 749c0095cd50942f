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
from collections.abc import Sequence

import numpy as np
from live import Drawing, Watch, Words

from memlab.memory.memory import Memory
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.stage import EmptyStage
from memlab.stages.search.dense import Dense
from memlab.stages.search.faiss_index import HNSW
from memlab.stages.search.late_index import LateIndex
from memlab.stages.search.late_interaction import WeightedLate

USERS = 20
NO_HITS = EmptyStage(writes=("hits",))


def pipelines() -> dict[str, Pipeline]:
    """A pipeline for each retriever, alone."""
    none = Pipeline(dense=NO_HITS, lexical=NO_HITS)
    return {"bm25": Pipeline(dense=NO_HITS),
            "dense": none.replace(dense=Dense(embedder=Words())),
            "hnsw": none.replace(dense=Dense(embedder=Words(), index=HNSW(), depth=100)),
            "late": none.replace(late=WeightedLate(matcher=Words(size=16))),
            "late_index": none.replace(late=LateIndex(matcher=Words(size=16)))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=5000)
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--only", default=",".join(pipelines()))
    args = parser.parse_args()
    draw = Drawing(args.turns, words=12, users=USERS)
    sessions = [draw.session(n) for n in range(args.sessions)]
    print(f"{args.sessions * args.turns:,} turns of 12 words, {USERS} users\n")
    columns = ("search", "first question", "all", "1 user of 20", "again", "19 users of 20", "again")
    print(f"| {' | '.join(columns)} |\n|---{'|--:' * (len(columns) - 1)}|")
    for name in args.only.split(","):
        with tempfile.TemporaryDirectory() as folder, Memory(folder, pipelines()[name]) as memory:
            memory.add_many(sessions)

            def ask(users: Sequence[int] | None = None, memory: Memory = memory) -> float:
                where = None if users is None else {"user": [f"user {user}" for user in users]}
                question, watch = draw.text(), Watch()
                memory.search(question, k=10, where=where)
                return watch.processor() if args.cpu else watch.clock()

            first, rows = ask(), []
            for n in range(args.times):
                one, most = [n], [user for user in range(USERS) if user != n]
                rows.append([ask(users) for users in (None, one, one, most, most)])
            cells = [first, *np.median(rows, axis=0)]
        print(f"| {name} | " + " | ".join(f"{1000 * cell:,.0f} ms" for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
