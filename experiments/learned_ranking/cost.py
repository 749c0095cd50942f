"""Time of the ranking of a run with `best` beside that with `best_weights`, measured in turns in one process.

    python experiments/learned_ranking/cost.py data=locomo data.path=FILE           all vectors stored
    python experiments/learned_ranking/cost.py --cold data=locomo data.path=FILE    nothing stored
"""

from __future__ import annotations

import statistics
import sys
import tempfile

from experiments.speed.live import Watch
from memlab.experiment.harness.arm import load
from memlab.experiment.harness.sweep import read
from memlab.pipeline import pipeline
from memlab.store import store_at


def main(*words: str) -> None:
    """Print the median seconds of each ranking, by processor and by the clock, and their ratio."""
    cold, own = "--cold" in words, [word for word in words if word != "--cold"]
    sweeps = {name: read([*own, f"system={name}"]) for name in ("best_weights", "best")}
    data = load(sweeps["best"].arms[0].dataset)
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in sweeps}
    for turn in range(2 if cold else 8):  # the first round is not counted: it loads models and fills the store
        for name, sweep in sweeps.items():
            pipeline._MEMO.clear()  # every ranking computes all of its stages
            with tempfile.TemporaryDirectory() as folder:
                store = store_at(folder if cold else sweep.settings.store)
                watch = Watch()
                sweep.arms[0].pipeline.run(data, store, until="score")
                if turn:
                    spent[name].append((watch.processor(), watch.clock()))
    for what, column in (("processor", 0), ("clock", 1)):
        weights, fit = (statistics.median(seconds[column] for seconds in some) for some in spent.values())
        print(f"{what}: best_weights {weights:.1f} s, best {fit:.1f} s, {fit / weights:.2f} times")


if __name__ == "__main__":
    main(*sys.argv[1:])
