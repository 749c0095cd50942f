"""Comparison of one finished arm with all others of its experiment, with Holm over all and counts by conversation.

    python experiments/systems/compare.py runs/systems/locomo best selected/turn/recall_all

A sweep declares at most three contrasts; this script tests one claim about all arms at once.
"""

from __future__ import annotations

import sys
from pathlib import Path

from memlab.evaluate.contrast import Contrast, measure
from memlab.evaluate.statistics import holm
from memlab.evaluate.verbalise import agreement
from memlab.experiment.harness.results import finished_arms


def main(folder: Path, best: str, metric: str) -> None:
    """Print one row for each other arm."""
    arms = {arm.name: arm for arm in finished_arms(folder, []).arms}
    others = [name for name, arm in arms.items() if name != best and not arm.oracle]
    rows = [measure(Contrast(best, name, metric), arms[best].questions, arms[name].questions,
                    alpha=0.05 / len(others), seed=0) for name in others]
    for row, p in zip(rows, holm([1.0 if row["p"] is None else row["p"] for row in rows])):
        where = f", {agreement(row)}" if agreement(row) else ""
        print(f"{best} - {row['comparator']}: {100 * row['difference']:+.1f} points ({100 * row['low']:+.1f} to "
              f"{100 * row['high']:+.1f}), {row['wins']} : {row['losses']}{where}, p = {p:.4f} "
              f"after Holm over {len(rows)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
