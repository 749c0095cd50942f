"""What was answered: the judges' scores and what the answers cost, a row a question."""

from __future__ import annotations

import polars as pl

from memlab.tables import Tables

PREFIX = "answer/"


def answered(tables: Tables) -> pl.DataFrame:
    """Return (question, answer/<judge>..., answer/prompt_tokens, answer/completion_tokens, answer/dropped).

    Only ``question`` where nobody was asked. A judge's column is its score, null where it gave none; a vote's samples
    count once, with their tokens together. ``dropped`` counts context items that the reader's window had no room for.
    """
    rows = tables["questions"].select("question")
    if "answers" not in tables or tables["answers"].is_empty():
        return rows
    costs = tables["answers"].group_by("question").agg(
        *(pl.col(c).sum().cast(pl.Float64).alias(PREFIX + c) for c in ("prompt_tokens", "completion_tokens")),
        pl.col("dropped").max().cast(pl.Float64).alias(f"{PREFIX}dropped"))
    verdicts = tables["verdicts"] if "verdicts" in tables else pl.DataFrame()
    if not verdicts.is_empty():
        for (judge,), found in sorted(verdicts.partition_by("judge", as_dict=True).items()):
            scores = found.select("question", pl.col("score").alias(f"{PREFIX}{judge}")).unique("question")
            rows = rows.join(scores, on="question", how="left", maintain_order="left")
    return rows.join(costs, on="question", how="left", maintain_order="left")


def judges(columns: list[str]) -> list[str]:
    """Name the judges' columns of a per-question frame.

    >>> judges(["question", "answer/f1", "answer/prompt_tokens", "session/mrr"])
    ['answer/f1']
    """
    costs = [f"{PREFIX}{c}" for c in ("prompt_tokens", "completion_tokens", "dropped")]
    return [c for c in columns if c.startswith(PREFIX) and c not in costs]
