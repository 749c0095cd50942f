"""Latency of a question by stage, median and 95th percentile, beside the table that MemoryStack's author prints.

    python experiments/systems/latency.py [--data lives] [--arms plain,best,memorystack_fast] [--questions 100]

Sessions are written once and their vectors are stored; then each question is asked alone, as a service would, and
each stage is timed by the clock. Takes some minutes on two cores. Stages have the names of the published table
(``memlab.evaluate.costs.STAGES``).
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from typing import ClassVar

import numpy as np
import polars as pl
from published import figures

from memlab import preset
from memlab.data.locomo import LoCoMo
from memlab.data.synthetic.dataset import Synthetic
from memlab.evaluate.costs import STAGES
from memlab.pipeline.slots import LAST_WRITTEN
from memlab.pipeline.tables import GOLD, PLACED, Tables
from memlab.store import Store


class OneQuestion(Store):
    """A store that shares no results of stages: each question pays for its own."""

    shares_results: ClassVar[bool] = False


def seconds_of(arm: str, data: Tables, questions: list[int]) -> dict[str, list[float]]:
    """Return the seconds of each question by stage of the published table, and in total."""
    pipeline, store = preset(f"system={arm}", "read/answer=none"), OneQuestion()
    written = pipeline.run(data, store, until=LAST_WRITTEN)
    slots = {slot: stage for stage, of in STAGES.items() for slot in of}
    found: dict[str, list[float]] = defaultdict(list)
    for warm in (True, False):  # the first round encodes
        for number in questions:
            one: dict[str, float] = defaultdict(float)

            def watch(slot: str, seconds: float, one: dict[str, float] = one) -> None:
                one[slots.get(slot, "")] += seconds
                one["total"] += seconds

            asked = written["questions"].filter(pl.col("question") == number)
            own = {name: written[name].filter(pl.col("corpus") == asked["corpus"][0]) for name in PLACED}
            pipeline.run(written.updated({"questions": asked, **own}), store, watch, after=LAST_WRITTEN, until="pack")
            for stage in (*STAGES, "total"):
                if not warm:
                    found[stage].append(one[stage])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=("lives", "locomo"), default="lives")
    parser.add_argument("--arms", default="plain,best,memorystack_fast")
    parser.add_argument("--questions", type=int, default=100)
    args = parser.parse_args()
    loaded = (Synthetic() if args.data == "lives" else LoCoMo(split="dev")).load()
    data = Tables(**{name: table for name, table in loaded.items() if name not in GOLD})
    chosen = np.random.default_rng(0).permutation(data["questions"]["question"].to_numpy())[:args.questions].tolist()
    stages = [stage for stage in (*STAGES, "total") if stage != "answer"]
    print(f"{len(chosen)} questions of {args.data}, milliseconds, median / 95th percentile\n")
    print(f"| arm | {' | '.join(stages)} |\n|---|{'--:|' * len(stages)}")
    for arm in args.arms.split(","):
        found = seconds_of(arm, data, chosen)
        cells = ["{:.0f} / {:.0f}".format(*np.quantile(1000 * np.array(found[stage]), [0.5, 0.95])) for stage in stages]
        print(f"| {arm} | {' | '.join(cells)} |", flush=True)
    for row in figures()["latencies"]:
        cells = [f"{row[stage]:g}" if stage in row else "" for stage in stages]
        print(f"| {row['author']}, printed | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
