"""The table of docs/peers.md, from one folder of finished arms and peers, such as that of ``+exp=systems``.

    python experiments/peers/table.py runs/peers/locomo best bm25s    # tested against best and against bm25s

Tests are of complete evidence within 1,000 tokens, with Holm's correction over the tests of a column.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from memlab.evaluate.contrast import ALPHA, Contrast, measure
from memlab.evaluate.statistics import holm
from memlab.evaluate.summary import summary
from memlab.experiment.harness.results import ArmRun, finished_arms
from memlab.report.markdown import table
from memlab.support.text.display import format_p

MAIN = "within_1000/turn/recall_all"
SHARES = {"300 tokens": "within_300/turn/recall_all", "1,000 tokens": MAIN,
          "3,000 tokens": "within_3000/turn/recall_all", "turn nDCG@10": "turn/ndcg@10",
          "session any@1": "session/recall_any@1", "all@10, turns": "turn/recall_all@10",
          "all@10, sessions": "session/recall_all@10"}
COSTS = ("adding, s", "ms a question", "MB", "MB of packages")
"""Column -> metric; complete evidence within some tokens has an interval."""


def figures(folder: Path, arm: ArmRun) -> list[str]:
    """Return the cells of an arm: shares, and what a peer cost."""
    found, file = summary(arm.questions, 0), folder / "rankings" / f"{arm.name}.json"
    cost: dict[str, Any] = json.loads(file.read_text())["figures"] if file.is_file() else {}
    costs = (cost["adding"], 1000 * cost["asking"] / arm.questions.height, cost["disk"] / 1e6,
             cost["packages"] / 1e6) if cost else ()
    return [arm.name, *(cell(found[metric], "tokens" in head) for head, metric in SHARES.items()),
            *(f"{value:,.1f}" for value in costs), *[""] * (len(COSTS) - len(costs))]


def cell(estimate: Any, interval: bool) -> str:
    """Write a share as ".815", with its interval if there is one."""
    value, low, high = (f"{estimate[name]:.3f}".removeprefix("0") if estimate[name] is not None else ""
                        for name in ("value", "low", "high"))
    return f"{value} ({low} to {high})" if interval and low else value


def tests(arms: list[ArmRun], base: str) -> dict[str, str]:
    """Return arm -> its difference to the base in points, with its interval and corrected p."""
    other = next(arm for arm in arms if arm.name == base)
    rows = [measure(Contrast(arm.name, base, MAIN), arm.questions, other.questions, alpha=ALPHA, seed=0, declared=False)
            for arm in arms if arm is not other]
    adjusted = holm([1.0 if row["p"] is None else row["p"] for row in rows])
    return {row["arm"]: f"{100 * (row['difference'] or 0):+.1f} ({100 * (row['low'] or 0):+.1f} to "
                        f"{100 * (row['high'] or 0):+.1f}), {format_p(p)}" for row, p in zip(rows, adjusted)}


def main(folder: str, *against: str) -> None:
    """Print the table, best first."""
    arms = sorted(finished_arms(Path(folder)).arms, key=lambda arm: -arm.metrics[MAIN])
    tested = {base: tests(arms, base) for base in against}
    heads = ["system", *SHARES, *COSTS, *(f"over {base}" for base in against)]
    print(table(heads, [[*figures(Path(folder), arm), *(tested[base].get(arm.name, "") for base in against)]
                        for arm in arms]))


if __name__ == "__main__":
    main(*sys.argv[1:])
