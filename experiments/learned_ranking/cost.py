"""Time the rankings of `best` and `best_learned` in turns, in one process, with all vectors stored.

    python experiments/learned_ranking/cost.py MODEL.json data=locomo data.path=FILE
"""

from __future__ import annotations

import statistics
import sys
import time

from memlab import pipeline
from memlab.harness.arm import load
from memlab.harness.sweep import read
from memlab.store import store_at

ROUNDS = 2


def main(model: str, *words: str) -> None:
    """Print seconds of processor and of the clock for each ranking, and the ratio of their medians."""
    systems = {"best": ["system=best"], "best_learned": ["system=best_learned", f"rank.score.model={model}"]}
    sweeps = {name: read([*words, *own]) for name, own in systems.items()}
    data = load(sweeps["best"].arms[0].dataset)
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in systems}
    for turn in range(ROUNDS + 1):  # the first round fills the store and is not counted
        for name, sweep in sweeps.items():
            pipeline._MEMO.clear()  # every ranking computes all of its stages
            cpu, clock = time.process_time(), time.perf_counter()
            sweep.arms[0].pipeline.run(data, store_at(sweep.settings.store), until="score")
            if turn:
                spent[name].append((time.process_time() - cpu, time.perf_counter() - clock))
    for what, column in (("processor", 0), ("clock", 1)):
        best, learned = (statistics.median(seconds[column] for seconds in spent[name]) for name in systems)
        print(f"{what}: best {best:.1f} s, best_learned {learned:.1f} s, {learned / best:.2f} times")


if __name__ == "__main__":
    main(*sys.argv[1:])
