"""The constant-K curve: what every fixed K would give on one ranking, at what mean number of tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from memlab.errors import MemlabError
from memlab.evaluate.averages import mean
from memlab.evaluate.evidence_ranks import grain, matrix, scored_evidence, unit_ranks
from memlab.evaluate.selection import within
from memlab.tables import Tables

LARGEST_K = 50


def constant_k(tables: Tables, largest: int = LARGEST_K) -> dict[str, list[dict[str, Any]]]:
    """Return ``{metric: [{"k", "tokens", "value"}, ...]}`` for K = 1 to ``largest`` on the table ``ranking``.

    ``tokens`` is the mean over all questions of the tokens of the first K units (column ``tokens``), before any
    packing; ``value`` the mean of a ``selected/...`` metric over the questions that count. Raises MemlabError
    where the ranking was not measured.
    """
    ranking, questions = tables["ranking"], tables["questions"]["question"]
    if "tokens" not in ranking.columns:
        raise MemlabError("the ranking has no column tokens", where="constant-K curve", fix="run read/measure first")
    evidence = scored_evidence(tables)
    levels = ["session"] if grain(tables["units"]) == "session" else ["session", "turn"]
    found = {level: matrix(unit_ranks(ranking, tables["units"], evidence, level), questions)  # type: ignore[arg-type]
             for level in levels}
    shown = ranking.filter(pl.col("rank") <= largest).group_by("rank").agg(pl.col("tokens").sum()).sort("rank")
    spent = dict(zip(shown["rank"], np.cumsum(shown["tokens"].to_numpy()) / max(len(questions), 1)))
    curve: dict[str, list[dict[str, Any]]] = {}
    tokens = 0.0
    for k in range(1, largest + 1):
        tokens = float(spent.get(k, tokens))
        for level in levels:
            for name, values in within(found[level], k, f"selected/{level}").items():
                value = mean(values[~np.isnan(values)])
                curve.setdefault(name, []).append({"k": k, "tokens": tokens, "value": value})
    return curve
