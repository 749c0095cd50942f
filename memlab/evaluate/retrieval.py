"""Standard retrieval metrics with binary relevance, from the ranks of the evidence.

All low-level functions take ``ranks`` of shape (q, g): per question the rank (from 1) of each piece of evidence, inf
where it was not retrieved, NaN as padding; they return shape (q,), NaN for a question without evidence.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.evaluate.evidence_ranks import Ranks, grain, matrix, scored_evidence, session_ranks, unit_ranks
from memlab.evaluate.statistics import Values
from memlab.tables import Tables

KS = (1, 3, 5, 10, 20, 30, 50)


def recall_any(ranks: Ranks, k: float) -> Values:
    """Return 1 if any evidence is among the first k, else 0 (also called hit or success at k).

    >>> recall_any(np.array([[2.0, np.inf], [7.0, np.nan]]), 5)
    array([1., 0.])
    """
    return _defined(ranks, (ranks <= k).any(axis=1).astype(float))


def recall_all(ranks: Ranks, k: float) -> Values:
    """Return 1 if all evidence is among the first k, else 0 (LongMemEval's recall_all, Wu et al., ICLR 2025).

    >>> recall_all(np.array([[2.0, np.inf], [3.0, np.nan]]), 5)
    array([0., 1.])
    """
    return _defined(ranks, ((ranks <= k).sum(axis=1) == count(ranks)).astype(float))


def recall(ranks: Ranks, k: float) -> Values:
    """Return the share of the evidence among the first k: |evidence in the first k| / |evidence|.

    >>> recall(np.array([[2.0, 9.0], [3.0, np.nan]]), 5)
    array([0.5, 1. ])
    """
    return _defined(ranks, (ranks <= k).sum(axis=1) / np.maximum(count(ranks), 1))


def precision(ranks: Ranks, k: int) -> Values:
    """Return the share of the first k that adds evidence: ranks up to k at which evidence appears first, over k.

    Divided by k even where fewer than k units exist, as trec_eval does. A unit that covers two pieces of
    evidence counts once.

    >>> precision(np.array([[1.0, 1.0, 4.0]]), 5)
    array([0.4])
    """
    return _defined(ranks, (_first_of_rank(np.sort(ranks)) & (np.sort(ranks) <= k)).sum(axis=1) / k)


def reciprocal_rank(ranks: Ranks, k: float = np.inf) -> Values:
    """Return 1 / rank of the first evidence, 0 where none is among the first k.

    Its mean is the MRR, with a cut the MRR@k (Voorhees, TREC-8, 1999).

    >>> reciprocal_rank(np.array([[4.0, 2.0], [np.inf, np.nan]])), reciprocal_rank(np.array([[11.0]]), 10)
    (array([0.5, 0. ]), array([0.]))
    """
    first = np.where(np.isnan(ranks), np.inf, ranks).min(axis=1)
    return _defined(ranks, np.where(first <= k, 1 / first, 0.0))


def ndcg(ranks: Ranks, k: int) -> Values:
    """Return nDCG@k, the normalised discounted cumulative gain (Jarvelin and Kekalainen, TOIS 2002).

    DCG@k = sum over evidence at rank r <= k of 1 / log2(r + 1); the ideal puts the largest gains first.
    With one piece of evidence per rank (sessions, turns) this is the binary nDCG of trec_eval. A unit that covers
    several pieces of evidence gains their number, so that the measure stays within [0, 1] for long passages.

    >>> ndcg(np.array([[1.0, 3.0], [1.0, 1.0]]), 10).round(4)
    array([0.9197, 1.    ])
    """
    rows = np.sort(ranks)
    dcg = np.where(rows <= k, 1 / np.log2(rows + 1), 0.0).sum(axis=1)
    opens = _first_of_rank(rows) | np.isinf(rows)
    gains = np.zeros(rows.shape)
    pieces = ~np.isnan(rows)
    np.add.at(gains, (np.nonzero(pieces)[0], (np.cumsum(opens, axis=1) - 1)[pieces]), 1.0)
    best = -np.sort(-gains, axis=1)[:, :k]
    ideal = (best / np.log2(np.arange(best.shape[1]) + 2)).sum(axis=1)
    return _defined(ranks, dcg / np.where(ideal > 0, ideal, 1))


def count(ranks: Ranks) -> Values:
    """Return the number of pieces of evidence of each question, (q,)."""
    return (~np.isnan(ranks)).sum(axis=1).astype(float)


def _first_of_rank(rows: Ranks) -> NDArray[np.bool_]:
    """Mark, in rows sorted ascending, the first of equal ranks; padding is never first."""
    first = np.ones(rows.shape, bool)
    first[:, 1:] = rows[:, 1:] != rows[:, :-1]
    return first & ~np.isnan(rows)


def _defined(ranks: Ranks, values: Values) -> Values:
    return np.where(count(ranks) > 0, values, np.nan)


def standard_metrics(ranks: Ranks, prefix: str) -> dict[str, Values]:
    """Return all standard metrics of one level, named as in metrics.json."""
    columns = {f"{prefix}/mrr": reciprocal_rank(ranks), f"{prefix}/mrr@10": reciprocal_rank(ranks, 10)}
    for k in KS:
        columns |= {f"{prefix}/recall_any@{k}": recall_any(ranks, k), f"{prefix}/recall_all@{k}": recall_all(ranks, k),
                    f"{prefix}/recall@{k}": recall(ranks, k), f"{prefix}/ndcg@{k}": ndcg(ranks, k),
                    f"{prefix}/precision@{k}": precision(ranks, k)}
    return columns


def retrieval(tables: Tables) -> pl.DataFrame:
    """Score the tables ``ranking`` and ``units``: one row per question of ``questions``, one column per metric.

    Session metrics always (a finer ranking is collapsed to the first appearance of each session); turn metrics
    where units are finer than sessions. Null where a question does not count or has no evidence at that level.
    """
    questions, evidence = tables["questions"]["question"], scored_evidence(tables)
    sessions = matrix(session_ranks(tables["ranking"], tables["units"], evidence), questions)
    columns = standard_metrics(sessions, "session")
    if grain(tables["units"]) != "session":
        turns = matrix(unit_ranks(tables["ranking"], tables["units"], evidence, "turn"), questions)
        columns |= standard_metrics(turns, "turn")
    return as_columns(questions, columns)


def as_columns(questions: pl.Series, columns: dict[str, Values]) -> pl.DataFrame:
    """Build a frame (question, one column per metric); NaN becomes null."""
    return pl.DataFrame({"question": questions, **{name: pl.Series(values, nan_to_null=True, dtype=pl.Float64)
                                                   for name, values in columns.items()}})
