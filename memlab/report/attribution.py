"""Error attribution in the report: how far the evidence got, and the causes found by intervention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from memlab.evaluate.attribution import CAUSES
from memlab.evaluate.evidence_funnel import STEPS, VIEWS
from memlab.harness.results import ArmRun
from memlab.report.figures import BLUE, GREY, VERMILLION, layout
from memlab.text.display import one_line

FAINT, TINTS = "rgba(87,96,106,.22)", {"right": "rgba(0,114,178,.35)", "wrong": "rgba(213,94,0,.30)"}
"""Colours of the bands; plotly's own would be white on this page."""

DECLINE = "no evidence: to decline"
VIEW_MEANINGS = {"any": "evidence counts as shown when any piece of it is", "all": "only when all of it is"}


@dataclass(frozen=True)
class CauseTable:
    """An arm's causes under one view: (cause, wrong answers, right answers that turn) and the sizes of the samples."""

    arm: str
    view: str
    rows: tuple[tuple[str, int, int], ...]
    wrong: int
    right: int

    @property
    def words(self) -> str:
        """How many wrong answers had their evidence in the context: the basis of any rate of reasoning errors."""
        lost = sum(n for cause, n, _ in self.rows if cause in STEPS)
        return (f"{self.arm}, {self.view} evidence: {lost} of {self.wrong} wrong answers lack evidence, "
                f"{self.wrong - lost} do not" if self.wrong else f"{self.arm}: no wrong answer was sampled")


def causes(arms: Sequence[ArmRun]) -> list[CauseTable]:
    """Count the causes of every arm with an attribution, in the order in which they are tried."""
    out = []
    for arm in arms:
        if arm.attribution is None:
            continue
        for view in VIEWS:
            sampled = arm.attribution.filter((pl.col("view") == view) & pl.col("sampled"))
            wrong, right = (Counter(sampled.filter(pl.col("right") == r)["cause"]) for r in (False, True))
            rows = tuple((c, wrong[c], right[c]) for c in CAUSES if wrong[c] or right[c])
            out.append(CauseTable(one_line(arm.name), view, rows, wrong.total(), right.total()))
    return out


def flows(table: pl.DataFrame, view: str) -> Counter[tuple[str, str]]:
    """Count the links (from, to): all questions, how far their evidence got, right or wrong, sampled cause."""
    out: Counter[tuple[str, str]] = Counter()
    for reached, right, cause in table.filter(pl.col("view") == view).select("reached", "right", "cause").iter_rows():
        middle, end = reached or DECLINE, "right" if right else "wrong"
        out["questions", middle] += 1
        out[middle, end] += 1
        if not right:
            out["wrong", cause if cause is not None else "not sampled"] += 1
    return out


def sankey(arms: Sequence[ArmRun]) -> dict[str, dict[str, Any]]:
    """Return one diagram per arm and view: all questions, how far the evidence got, right or wrong, and the cause."""
    out = {}
    for arm in arms:
        if arm.attribution is None:
            continue
        for view in VIEWS:
            links = flows(arm.attribution, view)
            order = list(dict.fromkeys(["questions", *STEPS[::-1], DECLINE, "right", "wrong", *CAUSES, "not sampled"]))
            # a step and a cause may share a name ("cut by K"): the cause is a node of its own
            ends = {("wrong", b): f"{b} " for a, b in links if a == "wrong"}
            names = [n for n in order if any(n in pair for pair in links if pair not in ends)]
            names += [ends["wrong", c] for c in order if ("wrong", c) in ends]
            at = {name: i for i, name in enumerate(names)}
            pairs = [(a, ends.get((a, b), b), n) for (a, b), n in sorted(links.items())]
            colours = {"right": BLUE, "wrong": VERMILLION}
            out[f"{one_line(arm.name)}, {view}"] = {
                "data": [{"type": "sankey", "arrangement": "snap",
                          "node": {"label": [n.strip() for n in names], "pad": 14, "thickness": 14,
                                   "color": [colours.get(n, GREY) for n in names]},
                          "link": {"source": [at[a] for a, _, _ in pairs], "target": [at[b] for _, b, _ in pairs],
                                   "value": [n for _, _, n in pairs],
                                   "color": [TINTS.get(b, TINTS.get(a, FAINT)) for a, b, _ in pairs]}}],
                "layout": layout(460)}
    return out
