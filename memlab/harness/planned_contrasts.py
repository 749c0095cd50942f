"""The declared contrasts of a plan (``plan=true``): which can be shown, and with what power for which difference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from rich.table import Column, Table

from memlab.data.dataset import Dataset
from memlab.data.groups import groups
from memlab.evaluate.averages import COSTS, view
from memlab.evaluate.contrast import ALPHA, PLANNED, Contrast
from memlab.evaluate.power import Assumptions, planned_detectable, planned_power
from memlab.evaluate.verbalise import grouping_in_words
from memlab.harness.arm import load
from memlab.runtime.console import Console


def print_contrasts(contrasts: Sequence[Contrast], dataset: Dataset, out: Console) -> None:
    """Print for each contrast its questions and groups, and the power of its test under ``Assumptions``."""
    tables, given = load(dataset), Assumptions()
    questions = tables["questions"].join(tables["gold"], on="question", how="left").join(
        groups(tables["questions"], tables["evidence"], tables["turns"], dataset.grouping()), on="question", how="left")
    alpha = ALPHA / max(len(contrasts), 1)
    table = Table(Column("contrast", overflow="fold"), Column("questions\nin groups", justify="right"),
                  Column("power", justify="right"), Column("80 % power\nfrom", justify="right"), show_edge=False)
    for contrast in contrasts:
        rows, metric = view(questions, contrast.metric)
        sizes = rows.filter("scored").group_by("group").agg(pl.len())["len"].to_numpy().astype(np.float64)
        table.add_row(f"{contrast.arm} {'>' if contrast.direction == 'greater' else '<'} {contrast.against}",
                      f"{int(sizes.sum()):,} in {len(sizes):,}", *_power(contrast, metric, sizes, alpha))
    out.print(grouping_in_words(questions.filter("scored")))
    out.print(table)
    out.print(f"power: the chance of p <= {alpha:.4f}, the first step of Holm's correction over {len(contrasts)}, if "
              f"two arms differ on {100 * given.discordance:.0f} % of the questions and the effect varies between "
              f"groups of several questions with a standard deviation of {100 * given.between:g} points. Fewer "
              "differing questions give more power.")


def _power(contrast: Contrast, metric: str, sizes: np.ndarray, alpha: float) -> tuple[str, str]:
    if len(sizes) < 2:
        return "cannot be\nshown", ""
    if metric in COSTS:
        return "an amount:\nnot planned", ""
    planned = PLANNED if contrast.planned is None else contrast.planned
    power, smallest = planned_power(sizes, planned, alpha), planned_detectable(sizes, alpha)
    return (f"{100 * (power or 0.0):.0f} % for {100 * planned:g} points",
            "cannot be shown" if smallest is None else f"{100 * smallest:.1f} points")
