"""Time of the rankings of `best` and `best_learned`, measured in turns in one process.

    python experiments/learned_ranking/cost.py MODEL.json data=locomo data.path=FILE           all vectors stored
    python experiments/learned_ranking/cost.py MODEL.json --cold data=locomo data.path=FILE    nothing stored
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from typing import Any

from memlab.experiment.harness.arm import load
from memlab.experiment.harness.sweep import read
from memlab.learn.ranker import stage
from memlab.pipeline import pipeline
from memlab.store import store_at

Seconds = tuple[float, float]
"""Of processor and of the clock."""


class Timed:
    """A function whose calls are timed."""

    def __init__(self, function: Any) -> None:
        self.function, self.spent = function, (0.0, 0.0)

    def __call__(self, *given: Any) -> Any:
        """Call the function, and add the time to ``spent``."""
        start = now()
        try:
            return self.function(*given)
        finally:
            self.spent = since(start, self.spent)


def now() -> Seconds:
    """Return the time of this process."""
    return time.process_time(), time.perf_counter()


def since(start: Seconds, before: Seconds = (0.0, 0.0)) -> Seconds:
    """Return the time since ``start``, added to ``before``."""
    cpu, clock = now()
    return before[0] + cpu - start[0], before[1] + clock - start[1]


def main(*words: str) -> None:
    """Print seconds of processor and of the clock for each ranking, and the ratio of their medians.

    The last ratio leaves out the reasons, which are for the report.
    """
    systems = {"best_weights": ["system=best_weights"], "best": ["system=best"]}
    cold = "--cold" in words
    sweeps = {name: read([*(word for word in words if word != "--cold"), *own]) for name, own in systems.items()}
    data = load(sweeps["best_weights"].arms[0].dataset)
    spent: dict[str, list[Seconds]] = {name: [] for name in (*systems, "reasons")}
    reasons = stage.reasons = Timed(stage.reasons)  # type: ignore[assignment]
    for turn in range(2 if cold else 8):  # the first round is not counted: it loads models and fills the store
        for name, sweep in sweeps.items():
            pipeline._MEMO.clear()  # every ranking computes all of its stages
            with tempfile.TemporaryDirectory() as folder:
                store = store_at(folder if cold else sweep.settings.store)
                start, reasons.spent = now(), (0.0, 0.0)
                sweep.arms[0].pipeline.run(data, store, until="score")
                if turn:
                    spent[name].append(since(start))
                    spent["reasons"] += [reasons.spent] if name == "best" else []
    for what, column in (("processor", 0), ("clock", 1)):
        weights, fit, why = (statistics.median(seconds[column] for seconds in spent[name]) for name in spent)
        print(f"{what}: best_weights {weights:.1f} s, best {fit:.1f} s, {fit / weights:.2f} times; without the "
              f"reasons {fit - why:.1f} s, {(fit - why) / weights:.2f} times")


if __name__ == "__main__":
    main(*sys.argv[1:])
