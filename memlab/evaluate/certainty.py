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
from memlab.pipeline.slots import LANES
from memlab.pipeline.tables import Tables

CERTAINTY = "certainty"
"""Column of a per-question frame that is no metric."""

ADVERSARIAL = "adversarial"
"""Type of questions to be declined that cite the evidence by which they mislead (LoCoMo)."""


def certainty(tables: Tables) -> pl.Series:
    """Return the number of each question, in their order; the lowest there is for a question without a hit."""
    ranking = tables["ranking"]
    lanes = [[name for name in ranking.columns if name.partition(":")[0] == search] for search in LANES]
    first = next(filter(None, [["probability"] if "probability" in ranking.columns else [], *lanes]), ["score"])
    rows = ranking.select("question", pl.max_horizontal(first))
    best = rows.group_by("question").agg(pl.nth(1).max().alias(CERTAINTY))
    found = tables["questions"].select("question").join(best, on="question", how="left", maintain_order="left")
    return found[CERTAINTY].fill_null(strategy="min").fill_null(0.0)


def nothing_there(tables: Tables) -> pl.DataFrame:
    """Return (question, certainty, ...): how well certainty tells questions without evidence from answerable ones.

    ``nothing/auroc`` (``auroc_parts``: its mean is the figure), and ``nothing/refused@5``: 1 for a question without
    evidence that is refused where 5 % of the answerable ones are. Absent where all questions have one certainty.
    """
    gold = tables["questions"].select("question").join(tables["gold"], on="question", how="left", maintain_order="left")
    answerable = gold.select(pl.col("scored") & ~pl.col("abstain")).to_series().to_numpy()
    absent = gold.select(pl.col("abstain") & (pl.col("category") != ADVERSARIAL).fill_null(True)).to_series().to_numpy()
    columns = {CERTAINTY: certainty(tables).to_numpy()}
    if absent.any() and answerable.any() and np.unique(columns[CERTAINTY]).size > 1:  # a list of ranks has no score
        columns |= figures(columns[CERTAINTY], answerable, absent)
    return as_columns(gold["question"], columns)


def figures(scores: Values, answerable: NDArray[np.bool_], absent: NDArray[np.bool_]) -> dict[str, Values]:
    """Return the metrics of ``nothing_there``, (q,) each, NaN for questions that do not count."""
    both, area = answerable | absent, np.full(len(scores), np.nan)
    area[both] = auroc_parts(scores[both], answerable[both])
    refused = np.where(absent, scores < threshold(scores[answerable]), np.nan)
    return {"nothing/auroc": area, "nothing/refused@5": refused}


def threshold(answerable: Values, share: float = 0.05) -> float:
    """Return the certainty below which this share of the answerable questions is refused, or a little less."""
    return float(np.sort(answerable)[int(share * len(answerable))])
