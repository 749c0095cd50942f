"""Per-question metrics: the rows behind every average, test and drill-down."""

from __future__ import annotations

import polars as pl

from memlab.data.groups import GroupBy, groups
from memlab.evaluate.answers import answer_metrics
from memlab.evaluate.longmemeval import official_metrics
from memlab.evaluate.memo import by_order
from memlab.evaluate.retrieval import retrieval
from memlab.evaluate.selection import selection
from memlab.tables import Tables, with_text

ABOUT = ("question", "corpus", "group", "text", "answer", "category", "abstain", "scored", "label_error")
"""Columns of a per-question frame that describe the question; all others are metrics."""

_standard, _official = by_order(retrieval), by_order(official_metrics)


def per_question(tables: Tables, by: GroupBy = "auto") -> pl.DataFrame:
    """Return one row per question, by number: the columns of ``ABOUT``, then one Float64 column per metric.

    ``by`` says which questions form a ``group``, that is, are not independent of each other.

    A metric is null where it is undefined: the question does not count, or has no evidence at that level.
    """
    questions = tables["questions"]
    rows = with_text(questions, tables["texts"]).join(tables["gold"], on="question", how="left").join(
        groups(questions, tables["evidence"], tables["turns"], by), on="question", how="left").select(ABOUT)
    for metrics in (_standard(tables), selection(tables), _official(tables), answer_metrics(tables)):
        rows = rows.join(metrics, on="question", how="left")
    return rows.sort("question")


def metric_names(questions: pl.DataFrame) -> list[str]:
    """Return the metric columns of a per-question frame, in its order."""
    return [c for c in questions.columns if c not in ABOUT]
