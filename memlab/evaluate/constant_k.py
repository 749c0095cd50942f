"""The constant-K curve: the recall of every fixed K on one ranking, and its mean number of tokens."""

from __future__ import annotations

from typing import TypedDict

import numpy as np
import polars as pl

from memlab.errors import MemlabError
from memlab.evaluate.averages import mean
from memlab.evaluate.evidence_ranks import grain, matrix, scored_evidence, unit_ranks
from memlab.evaluate.selection import within
from memlab.tables import Tables

LARGEST_K = 50


class CurvePoint(TypedDict):
    """One K: mean tokens of the first K units before any packing, and the mean of a ``selected/...`` metric."""

    k: int
    tokens: float
    value: float | None


def constant_k(tables: Tables, largest: int = LARGEST_K) -> dict[str, list[CurvePoint]]:
    """Return metric -> points for K = 1 to ``largest`` on the table ``ranking``.

    Tokens (column ``tokens``) are averaged over all questions, values over the questions that count. Raises
    MemlabError where the ranking has no tokens.
    """
    ranking, questions = tables["ranking"], tables["questions"]["question"]
    if "tokens" not in ranking.columns:
        raise MemlabError("the ranking has no column tokens", where="constant-K curve", fix="run read/measure first")
    evidence = scored_evidence(tables)
    levels = ["session"] if grain(tables["units"]) == "session" else ["session", "turn"]
    ranks = {level: matrix(unit_ranks(ranking, tables["units"], evidence, level), questions)  # type: ignore[arg-type]
             for level in levels}
    by_rank = ranking.filter(pl.col("rank") <= largest).group_by("rank").agg(pl.col("tokens").sum()).sort("rank")
    tokens_at = dict(zip(by_rank["rank"], np.cumsum(by_rank["tokens"].to_numpy()) / max(len(questions), 1)))
    curve: dict[str, list[CurvePoint]] = {}
    tokens = 0.0
    for k in range(1, largest + 1):
        tokens = float(tokens_at.get(k, tokens))
        for level in levels:
            for name, values in within(ranks[level], k, f"selected/{level}").items():
                value = mean(values[~np.isnan(values)])
                curve.setdefault(name, []).append({"k": k, "tokens": tokens, "value": value})
    return curve
