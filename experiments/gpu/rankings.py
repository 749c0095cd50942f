"""First ten units of each question: kept from runs on a CPU, and compared with runs on a card.

    memlab run -m system=plain,best data=locomo data.path=FILE track=none out=RUNS
    python experiments/gpu/rankings.py keep RUNS KEPT.json         on the CPU
    python experiments/gpu/rankings.py compare RUNS KEPT.json      on the card
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import polars as pl

import memlab

METRICS = ("turn/ndcg@10", "turn/recall_all@5", "session/ndcg@10", "session/recall_all@5")


def main() -> None:
    """Write what runs ranked, or compare it with what was written."""
    action, runs, file = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    here = {name: first(run) for name, run in memlab.load(runs).items()}
    if action == "keep":
        file.write_text(json.dumps(here))
        return
    for arm, there in json.loads(file.read_text()).items():
        if arm not in here:
            print(f"{arm}: no run on this machine")
            continue
        pairs = [(here[arm]["first"].get(question, []), units) for question, units in there["first"].items()]
        sets, orders, best = (sum(test(a, b) for a, b in pairs) for test in (
            lambda a, b: set(a) == set(b), lambda a, b: a == b, lambda a, b: a[:1] == b[:1]))
        print(f"{arm}: of {len(pairs)} questions the first ten units are the same for {sets}, also in order for "
              f"{orders}, the first unit for {best}")
        for metric in METRICS:
            print(f"  {metric:<22} {there['metrics'][metric]:.4f} on the CPU, {here[arm]['metrics'][metric]:.4f} here")
        for slot, spent in here[arm]["seconds"].items():
            if max(spent, there["seconds"].get(slot, 0)) > 1:
                print(f"  {slot:<22} {there['seconds'].get(slot, 0):.1f} s on the CPU, {spent:.1f} s here")


def first(run: Any) -> dict[str, Any]:
    """Return the first ten units of each question, the metrics and the seconds of a run."""
    ranking = pl.read_parquet(run.folder / "ranking.parquet").filter(pl.col("rank") <= 10).sort("question", "rank")
    by_question = ranking.group_by("question", maintain_order=True).agg("unit")
    manifest = json.loads((run.folder / "manifest.json").read_text())
    return {"first": {str(question): units for question, units in by_question.iter_rows()},
            "metrics": {name: run.metrics.get(name, float("nan")) for name in METRICS}, "seconds": manifest["seconds"]}


if __name__ == "__main__":
    main()
