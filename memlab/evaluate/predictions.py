"""The quality of predictions: question classes against the benchmark's types, and calibrated probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from memlab.question_types import classes_of_type
from memlab.text.display import is_number


def confusion(classes: pl.DataFrame, types: pl.DataFrame) -> pl.DataFrame:
    """Count (category, class, n), in alphabetical order; the class of a question is its first row in ``classes``.

    ``types`` has question and category; a question without a category is not counted, one without a class has null.

    >>> classes = pl.DataFrame({"question": [0, 0, 1], "class": ["update", "temporal", "factual"]})
    >>> confusion(classes, pl.DataFrame({"question": [0, 1], "category": ["knowledge-update"] * 2})).rows()
    [('knowledge-update', 'factual', 1), ('knowledge-update', 'update', 1)]
    """
    first = classes.unique("question", keep="first", maintain_order=True)
    return types.drop_nulls("category").select("question", "category").join(first, on="question", how="left").group_by(
        "category", "class").agg(pl.len().cast(pl.Int64).alias("n")).sort("category", "class")


def right_by_type(counts: pl.DataFrame) -> pl.DataFrame:
    """Return (category, right, n) of a ``confusion``: the questions whose class fits their type, and all of them.

    ``memlab.question_types`` states which classes fit; ``right`` is null for a type without a class of its own.
    """
    rows = counts.with_columns(pl.Series("fits", [c in classes_of_type(t) for t, c in counts.select(
        "category", "class").iter_rows()], pl.Boolean))
    has_class = pl.Series("has_class", [bool(classes_of_type(t)) for t in counts["category"]], dtype=pl.Boolean)
    return rows.with_columns(has_class).group_by("category", maintain_order=True).agg(
        pl.when(pl.col("has_class").first()).then(pl.col("n").filter("fits").sum()).alias("right"), pl.col("n").sum())


def accuracy(counts: pl.DataFrame) -> tuple[int, int]:
    """Return (right, n) over all types that some class fits."""
    rows = right_by_type(counts).drop_nulls("right")
    return int(rows["right"].sum()), int(rows["n"].sum())


def complete_bins(bins: Iterable[object]) -> list[Mapping[str, Any]]:
    """Return the bins that have numbers for ``estimated`` and ``observed``."""
    return [b for b in bins if isinstance(b, Mapping)
            and is_number(b.get("estimated")) and is_number(b.get("observed"))]


def calibration_error(bins: Iterable[object]) -> float | None:
    """Return the mean over cases of |estimated - observed| of their bin; None without a bin.

    Naeini, Cooper, Hauskrecht: Obtaining Well Calibrated Probabilities Using Bayesian Binning, AAAI 2015.

    >>> calibration_error([{"estimated": .2, "observed": .3, "n": 3}, {"estimated": .9, "observed": .7, "n": 1}])
    0.125
    """
    rows = [(b["estimated"], b["observed"], b.get("n") or 1) for b in complete_bins(bins)]
    total = sum(n for *_, n in rows)
    return sum(abs(estimated - observed) * n for estimated, observed, n in rows) / total if total else None
