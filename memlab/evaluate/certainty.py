"""Certainty: one number by which an arm could know that it has found nothing, and how well that number tells.

It is the largest probability where units have one (rank/select=marginal), else the highest raw score of the first
search, before any z-score; for a ranking made elsewhere, its highest score. Without evidence are the questions that are
to be declined; adversarial ones, which have evidence, stand apart.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.evaluate.retrieval import as_columns
from memlab.evaluate.statistics import Values, auroc_parts
from memlab.pipeline.tables import Tables

CERTAINTY = "certainty"
"""Column of a per-question frame that is no metric."""

REFUSED = 0.05
"""Share of the answerable questions that may be refused."""

ADVERSARIAL = "adversarial"
"""Type of questions to be declined that cite the evidence by which they mislead (LoCoMo)."""


def certainty(tables: Tables) -> pl.Series:
    """Return the number of each question, in their order; the lowest there is for a question without a hit."""
    ranking = tables["ranking"]
    rows = ranking.select("question", pl.col("probability" if "probability" in ranking.columns else "score"))
    if "probability" not in ranking.columns and "hits" in tables and tables["hits"].height:
        search = pl.col("lane").str.split(":").list.first()
        first = tables["hits"].filter(search == search.first())
        rows = first.join(tables["queries"].select("query", "question"), on="query").select("question", "score")
    best = rows.group_by("question").agg(pl.nth(1).max().alias(CERTAINTY))
    found = tables["questions"].select("question").join(best, on="question", how="left", maintain_order="left")
    return found[CERTAINTY].fill_null(strategy="min").fill_null(0.0)


def nothing_there(tables: Tables) -> pl.DataFrame:
    """Return (question, certainty, ...): how well certainty tells questions without evidence from answerable ones.

    ``nothing/auroc`` (``auroc_parts``: its mean is the figure), of adversarial questions ``nothing/auroc_adversarial``;
    ``nothing/refused@5`` is 1 for a question without evidence that is refused where 5 % of the answerable ones are.
    """
    gold = tables["questions"].select("question").join(tables["gold"], on="question", how="left", maintain_order="left")
    scores = certainty(tables).to_numpy()
    answerable = gold.select(pl.col("scored") & ~pl.col("abstain")).to_series().to_numpy()
    misled = (gold["category"] == ADVERSARIAL).fill_null(False).to_numpy()
    columns = {CERTAINTY: scores}
    for name, kind in (("", ~misled), (f"_{ADVERSARIAL}", misled)):
        absent = gold["abstain"].to_numpy() & kind
        both = absent | answerable
        if absent.any() and answerable.any():
            columns[f"nothing/auroc{name}"] = _spread(auroc_parts(scores[both], answerable[both]), both)
            refused = scores[absent] < threshold(scores[answerable])
            columns[f"nothing/refused@{round(100 * REFUSED)}{name}"] = _spread(refused.astype(np.float64), absent)
    return as_columns(gold["question"], columns)


def threshold(answerable: Values, share: float = REFUSED) -> float:
    """Return the certainty below which this share of the answerable questions is refused, or a little less."""
    return float(np.sort(answerable)[int(share * len(answerable))])


def risk_coverage(scores: Values, answerable: NDArray[np.bool_]) -> tuple[Values, Values]:
    """Return (coverage, risk), (n,) each: of the questions with the highest scores, the share without evidence.

    Equal scores are answered together, so that their order does not matter.

    >>> risk_coverage(np.array([0.9, 0.5, 0.1]), np.array([True, False, True]))
    (array([0.33333333, 0.66666667, 1.        ]), array([0.        , 0.5       , 0.33333333]))
    """
    levels, at = np.unique(-scores, return_inverse=True)
    asked, absent = (np.cumsum(np.bincount(at, weights, len(levels))) for weights in (None, ~answerable))
    return asked / len(scores), absent / asked


def _spread(values: Values, rows: NDArray[np.bool_]) -> Values:
    """Return the values at these rows, and NaN at the others."""
    out = np.full(len(rows), np.nan)
    out[rows] = values
    return out
