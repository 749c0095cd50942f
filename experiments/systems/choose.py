"""Configuration search on one half of a benchmark: first the write side, then the lanes' weights one at a time.

    python experiments/systems/choose.py data=longmemeval_s data.path=FILE data.split=a

The objective is the share of questions for which all evidence turns are shown within 1,000 tokens; turn nDCG@10 breaks
ties. A change is kept if it gains .005 in this share, or .005 in nDCG at the same share. The other half is never
loaded.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from memlab.evaluate.summary import averages, per_question
from memlab.experiment.harness.arm import load
from memlab.experiment.harness.sweep import read
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.stage import Stage
from memlab.pipeline.tables import Tables
from memlab.store import Store, store_at

BASE = ("system=best", "rank/select=budget", "rank.select.twin=false", "track=none")
WRITE_SIDES = {
    "as it is": (),
    "facts merged": ("write/extract=rules_merge",),
    "dates": ("write/anchor=rules",),
    "header": ("write/context=header",),
    "facts merged, dates": ("write/extract=rules_merge", "write/anchor=rules"),
}
LANES = ("late", "late_window", "late_session", "lexical:turn.user", "lexical:round", "lexical:session",
         "lexical:session.user")
STEPS = (0.0, 0.25, 0.5, 1.0, 2.0)
GAIN = 0.005


@dataclass(frozen=True, order=True)
class Result:
    """The metrics of a configuration."""

    complete: float
    ndcg: float

    def beats(self, other: Result) -> bool:
        """Return whether the change from ``other`` to this result is worth keeping."""
        if abs(self.complete - other.complete) < GAIN:
            return self.ndcg > other.ndcg + GAIN
        return self.complete > other.complete


def result(pipeline: Pipeline, tables: Tables, store: Store) -> Result:
    """Run a pipeline and return its metrics."""
    figures = averages(per_question(pipeline.run(tables, store)))
    return Result(round(figures["selected/turn/recall_all"], 6), round(figures.get("turn/ndcg@10", 0.0), 6))


def with_weights(score: Stage, **weights: float) -> Stage:
    """Return the scorer with other weights; a lane of weight 0 stays in the mapping."""
    return type(score)(**{**vars(score), "weights": {**score.weights, **weights}})  # type: ignore[attr-defined]


def main(words: list[str]) -> None:
    """Search and print every step."""
    best: tuple[Result, str, Pipeline] | None = None
    for name, overrides in WRITE_SIDES.items():
        (arm,) = read([*BASE, *words, *overrides]).arms
        tables, store = load(arm.dataset), store_at(None)
        result_so_far = result(arm.pipeline, tables, store)
        print(f"{name}: {result_so_far}", flush=True)
        if best is None or result_so_far.beats(best[0]):
            best = result_so_far, name, arm.pipeline
    assert best is not None
    result_so_far, name, pipeline = best
    for turn in (1, 2):
        before = result_so_far
        for lane in LANES:
            for step in STEPS:
                other = pipeline.replace(score=with_weights(pipeline.score, **{lane: step}))
                candidate = result(other, tables, store)
                if candidate.beats(result_so_far):
                    result_so_far, pipeline = candidate, other
                    print(f"round {turn}: {lane} = {step}: {result_so_far}", flush=True)
        if result_so_far == before:
            break
    print(f"chosen: {name}, weights {pipeline.score.weights}: {result_so_far}")  # type: ignore[attr-defined]


if __name__ == "__main__":
    main(sys.argv[1:])
