"""Features of the first K units of a ranking, from its shape alone: they need no label and no id."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.query.classify import CLASSES
from memlab.question_types import FALLBACK, first_of
from memlab.rank.units import signals_of

Matrix = NDArray[np.float64]

FEATURES: tuple[str, ...] = (
    "log_k",             # log of K
    "log_units",         # log of the number of units ranked (at most depth)
    "score",             # z-score of unit K among the first depth
    "below_top",         # (top - score of K) / range
    "gap",               # drop after unit K / range
    "top_gap",           # drop after unit 1 / range
    "mass",              # softmax mass of the first K z-scores
    "entropy",           # entropy of that softmax / log(units): 1 is a flat list
    "sessions",          # distinct sessions among the first K / K
    "agreement",         # mean over lanes of |first K of both| / K
    "agreement_depth",   # agreement x log K
    *(f"is_{name}" for name in CLASSES),
    *(f"is_{name}_depth" for name in CLASSES),  # x log K: a count needs more units
)


def features(ranking: pl.DataFrame, units: pl.DataFrame, classes: pl.DataFrame, depth: int) -> pl.DataFrame:
    """Return (question, rank, one column per feature) for each K = rank up to ``depth`` of each ranked question.

    A question over several sessions has the flag of counting questions (``memlab.question_types``); a question of a
    class without a flag has none.
    """
    rows = ranking.filter(pl.col("rank") <= depth).sort("question", "rank")
    questions = rows["question"].unique(maintain_order=True)
    q = rows["question"].rank("dense").to_numpy().astype(np.int64) - 1  # row of the matrices below
    r = rows["rank"].to_numpy().astype(np.int64) - 1                   # column
    shape = (len(questions), depth)
    ranked = np.zeros(shape, bool)
    ranked[q, r] = True
    n = np.maximum(ranked.sum(axis=1, keepdims=True), 1)               # (Q, 1)
    k = np.arange(1, depth + 1)[None, :]                               # (1, K)
    log_k = np.broadcast_to(np.log(k), shape)

    score = np.zeros(shape)
    score[q, r] = rows["score"].to_numpy()
    mean = score.sum(axis=1, keepdims=True) / n
    deviation = np.sqrt((np.where(ranked, score - mean, 0) ** 2).sum(axis=1, keepdims=True) / n)
    z = np.where(ranked, (score - mean) / np.where(deviation > 0, deviation, 1), 0)
    last = np.take_along_axis(score, n - 1, axis=1)
    spread = np.where(score[:, :1] > last, score[:, :1] - last, 1)
    following = np.concatenate([score[:, 1:], score[:, -1:]], axis=1)
    gap = np.where(k < n, score - following, 0) / spread
    share = np.where(ranked, np.exp(z), 0)
    share /= share.sum(axis=1, keepdims=True)
    entropy = -(share * np.log(np.where(share > 0, share, 1))).sum(axis=1, keepdims=True) / np.log(np.maximum(n, 2))

    agreement = _agreement(rows, q, shape)
    columns: dict[str, Matrix] = {
        "log_k": log_k, "log_units": np.log(n), "score": z, "below_top": (score[:, :1] - score) / spread,
        "gap": gap, "top_gap": gap[:, :1], "mass": share.cumsum(axis=1), "entropy": entropy,
        "sessions": _sessions(rows, units, q, r, shape), "agreement": agreement, "agreement_depth": agreement * log_k,
    }
    kinds = {question: FALLBACK.get(kind, kind) for question, kind in first_of(classes).items()}
    for name in CLASSES:
        flag = np.array([[float(kinds.get(question) == name)] for question in questions])
        columns[f"is_{name}"], columns[f"is_{name}_depth"] = flag, flag * log_k
    return rows.select("question", "rank").with_columns(
        pl.Series(name, np.broadcast_to(columns[name], shape)[q, r]) for name in FEATURES)


def _sessions(rows: pl.DataFrame, units: pl.DataFrame, q: NDArray[np.int64], r: NDArray[np.int64],
              shape: tuple[int, int]) -> Matrix:
    ranked = rows.select("question", "unit").join(units.select("unit", "session"), on="unit", how="left",
                                                  maintain_order="left")
    new = np.zeros(shape)
    new[q, r] = ranked.select(pl.struct("question", "session").is_first_distinct()).to_series().to_numpy()
    return new.cumsum(axis=1) / np.arange(1, shape[1] + 1)


def _agreement(rows: pl.DataFrame, q: NDArray[np.int64], shape: tuple[int, int]) -> Matrix:
    """Mean over lanes of the share of the first K units that the lane's own order has among its first K as well."""
    lanes = signals_of(rows)
    total = np.zeros(shape)
    for lane in lanes:
        own = rows.select(pl.col(lane).rank("ordinal", descending=True).over("question").alias("own"), "rank")
        k = own.filter(pl.col("own").is_not_null()).select(pl.max_horizontal("own", "rank"))
        common = np.zeros(shape)
        np.add.at(common, (q[own["own"].is_not_null().to_numpy()], k.to_series().to_numpy().astype(np.int64) - 1), 1)
        total += common.cumsum(axis=1)
    return total / (max(len(lanes), 1) * np.arange(1, shape[1] + 1))
