"""Time the rankings of `best` and `best_learned` in turns, in one process.

    python experiments/learned_ranking/cost.py MODEL.json data=locomo data.path=FILE           all vectors stored
    python experiments/learned_ranking/cost.py MODEL.json --cold data=locomo data.path=FILE    nothing stored
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time

from memlab import pipeline
from memlab.harness.arm import load
from memlab.harness.sweep import read
from memlab.store import store_at


def main(model: str, *words: str) -> None:
    """Print seconds of processor and of the clock for each ranking, and the ratio of their medians."""
    systems = {"best": ["system=best"], "best_learned": ["system=best_learned", f"rank.score.model={model}"]}
    cold = "--cold" in words
    sweeps = {name: read([*(word for word in words if word != "--cold"), *own]) for name, own in systems.items()}
    data = load(sweeps["best"].arms[0].dataset)
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in systems}
    for turn in range(2 if cold else 3):  # the first round is not counted: it loads models and fills the store
        for name, sweep in sweeps.items():
            pipeline._MEMO.clear()  # every ranking computes all of its stages
            with tempfile.TemporaryDirectory() as folder:
                store = store_at(folder if cold else sweep.settings.store)
                cpu, clock = time.process_time(), time.perf_counter()
                sweep.arms[0].pipeline.run(data, store, until="score")
                if turn:
                    spent[name].append((time.process_time() - cpu, time.perf_counter() - clock))
    for what, column in (("processor", 0), ("clock", 1)):
        best, learned = (statistics.median(seconds[column] for seconds in spent[name]) for name in systems)
        print(f"{what}: best {best:.1f} s, best_learned {learned:.1f} s, {learned / best:.2f} times")


if __name__ == "__main__":
    main(*sys.argv[1:])
