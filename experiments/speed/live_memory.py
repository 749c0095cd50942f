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
import resource
import subprocess
import sys
import tempfile

import numpy as np
from live import Drawing, Watch, Words, resident, size

from memlab.memory.memory import Memory
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.stage import EmptyStage
from memlab.stages.search.dense import Dense

PIPELINES = {"drawn": lambda: Pipeline(dense=Dense(embedder=Words())), "minilm": Pipeline,
             "words": lambda: Pipeline(dense=EmptyStage(writes=("hits",)))}


def load_again(folder: str, search: str, question: str) -> None:
    """Load a memory and ask it, as a new process would."""
    with Memory(folder, PIPELINES[search]()) as memory:
        watch = Watch()
        print(f"loaded in another process: {len(memory):,} sessions in {watch}")
        print(f"first question: {ask(memory, question):.2f} s")


def ask(memory: Memory, question: str) -> float:
    """Return the seconds of a question."""
    watch = Watch()
    memory.search(question)
    return watch.clock()


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
    draw, times = Drawing(args.turns, args.words), list[float]()
    steps = {min(100, args.sessions), *(args.sessions * i // 10 for i in range(1, 11))}
    with tempfile.TemporaryDirectory() as folder:
        with Memory(folder, PIPELINES[args.search]()) as memory:
            memory.search("warm")
            print("| sessions | add, median | longest of 100 additions | first question | second question "
                  "| memory (RSS) | on disk |")
            print("|--:|--:|--:|--:|--:|--:|--:|")
            for n in range(1, args.sessions + 1):
                one = draw.session(n)
                watch = Watch()
                memory.add(one)
                times.append(watch.clock())
                if n in steps:
                    first, second = (ask(memory, draw.text()) for _ in range(2))
                    last = 1000 * np.array(times[-100:])
                    print(f"| {n:,} | {np.median(last):.1f} ms | {last.max():.0f} ms | {first:.2f} s | {second:.2f} s "
                          f"| {resident():,.0f} MB | {size(folder):.0f} MB |", flush=True)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        print(f"\n{args.sessions:,} additions in {sum(times):.0f} s; peak memory {peak:,.0f} MB", flush=True)
        load = [sys.executable, __file__, "--search", args.search, "--again", folder, draw.text()]
        subprocess.run(load, check=True)


if __name__ == "__main__":
    main()
