"""Nominal against realised risk of conformal selection, from a finished run.

    python experiments/adaptive_k/risk.py FOLDER

FOLDER is the run folder of an arm rank/select=conformal_mass or conformal. The realised risk is the mean over groups of
the share of questions without all their evidence turns. Prints a Markdown table.
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

from memlab.evaluate.curves import RULE, value_column
from memlab.learn.conformal import ConformalSelect


def table(folder: Path) -> pl.DataFrame:
    """Return (alpha, realised, tokens), one row per alpha of the curve."""
    alphas = [rule.alpha for rule in ConformalSelect().variations()]
    metric = value_column("turn")
    questions = pl.read_parquet(folder / "questions.parquet").select("question", "group")
    rows = pl.read_parquet(folder / "curve.parquet").filter(pl.col("rule") == RULE).join(questions, on="question")
    by_group = rows.fill_nan(None).drop_nulls(metric).group_by("point", "group").agg(
        (1 - pl.col(metric).mean()).alias("risk"), pl.col("tokens").mean())
    return by_group.group_by("point").agg(pl.col("risk").mean().alias("realised"), pl.col("tokens").mean()).sort(
        "point").select(pl.col("point").map_elements(lambda i: alphas[i], return_dtype=pl.Float64).alias("alpha"),
                        "realised", "tokens")


def main(folder: str) -> None:
    """Print every fourth row."""
    print("| alpha | realised risk | tokens |\n|--:|--:|--:|")
    for alpha, realised, tokens in table(Path(folder)).sort("alpha").gather_every(4).iter_rows():
        print(f"| {alpha:.2f} | {realised:.3f} | {tokens:,.0f} |")


if __name__ == "__main__":
    main(sys.argv[1])
