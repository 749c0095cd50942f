"""Rows of the tables of this experiment, from one folder of finished arms, or from an old and a new one.

    python experiments/systems/table.py runs/systems/locomo
    python experiments/systems/table.py OLD/systems/locomo runs/systems/locomo    # only what moved, old -> new
"""

from __future__ import annotations

import sys
from pathlib import Path

from memlab.experiment.harness.results import finished_arms

COLUMNS = {
    "any@1": "session/recall_any@1", "any@10": "session/recall_any@10", "session all@5": "session/recall_all@5",
    "turn nDCG@10": "turn/ndcg@10", "all evidence turns shown": "selected/turn/recall_all",
    "all evidence sessions shown": "selected/session/recall_all", "tokens": "context/tokens_mean"}
"""Column of the tables -> metric."""


def rows(folder: Path) -> dict[str, list[str]]:
    """Return arm -> its cells, in order of the main figure."""
    arms = sorted(finished_arms(folder, []).arms, key=lambda arm: -arm.metrics.get("selected/turn/recall_all", 0.0))
    return {arm.name: [cell(arm.metrics.get(metric)) for metric in COLUMNS.values()] for arm in arms}


def cell(value: float | None) -> str:
    """Write a share as ".815", tokens as "1,314", and nothing where there is no figure."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value > 1 else f"{value:.3f}".removeprefix("0")


def main(*folders: str) -> None:
    """Print the table."""
    *old, new = (rows(Path(folder)) for folder in folders)
    print("| system |", " | ".join(COLUMNS), "|")
    print("|---|" + "--:|" * len(COLUMNS))
    for name, cells in new.items():
        before = old[0].get(name, cells) if old else cells
        if not old or before != cells:
            print(f"| {name} |", " | ".join(now if was == now else f"{was} -> {now}"
                                            for was, now in zip(before, cells)), "|")


if __name__ == "__main__":
    main(*sys.argv[1:])
