"""Scores and token costs of the answers, one row per question."""

from __future__ import annotations

import polars as pl

from memlab.tables import Tables

PREFIX = "answer/"

COSTS = ("prompt_tokens", "completion_tokens", "dropped")
"""Columns of the answers that are no judge's."""


def answer_metrics(tables: Tables) -> pl.DataFrame:
    """Return (question, answer/<judge>..., answer/prompt_tokens, answer/completion_tokens, answer/dropped).

    Only ``question`` without a reader. A judge's column is its score, null where it gave none; the samples of a vote
    count once, with their tokens summed. ``dropped`` counts context items that did not fit into the reader's window.
    """
    rows = tables["questions"].select("question")
    if "answers" not in tables or tables["answers"].is_empty():
        return rows
    costs = tables["answers"].group_by("question").agg(
        *(pl.col(c).sum().cast(pl.Float64).alias(PREFIX + c) for c in COSTS[:2]),
        pl.col("dropped").max().cast(pl.Float64).alias(f"{PREFIX}dropped"))
    verdicts = tables["verdicts"] if "verdicts" in tables else pl.DataFrame()
    if not verdicts.is_empty():
        for (judge,), part in sorted(verdicts.partition_by("judge", as_dict=True).items()):
            scores = part.select("question", pl.col("score").alias(f"{PREFIX}{judge}")).unique("question")
            rows = rows.join(scores, on="question", how="left", maintain_order="left")
    return rows.join(costs, on="question", how="left", maintain_order="left")


def judge_columns(columns: list[str]) -> list[str]:
    """Return the judges' columns of a per-question frame.

    >>> judge_columns(["question", "answer/f1", "answer/prompt_tokens", "session/mrr"])
    ['answer/f1']
    """
    return [c for c in columns if c.startswith(PREFIX) and c.removeprefix(PREFIX) not in COSTS]
