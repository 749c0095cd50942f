"""The flat figures of metrics.json from per-question rows, equal to the bit for any order or split of the rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import polars as pl

from memlab.evaluate.per_question import metric_names

COSTS = ("context/tokens", "selected/k", "answer/prompt_tokens", "answer/completion_tokens", "answer/dropped")
"""Metrics that are amounts; their average is named ``..._mean``."""

PRINTED = tuple(f"{level}/{metric}" for level in ("turn", "session")
                for metric in ("ndcg@10", "recall@10", "mrr@10", "recall_any@1"))
"""Metrics that other benchmarks print, and that have macro averages too; recall_any@1 is their hit@1."""


def mean(values: Iterable[float]) -> float | None:
    """Return the mean by the exactly rounded sum, which does not depend on order; None for no values.

    >>> mean([1e16, 1.0, -1e16])
    0.3333333333333333
    """
    listed = list(values)
    return math.fsum(listed) / len(listed) if listed else None


def averaged_name(metric: str) -> str:
    """Return the name of a metric's average.

    >>> averaged_name("context/tokens"), averaged_name("session/mrr")
    ('context/tokens_mean', 'session/mrr')
    """
    return f"{metric}_mean" if metric in COSTS else metric


def views(questions: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield (prefix, rows): all questions, those of each type, and, where labels were audited, those without error."""
    yield "", questions
    for category in sorted(questions["category"].drop_nulls().unique()):
        yield f"type={category}/", questions.filter(pl.col("category") == category)
    if questions["label_error"].is_not_null().any():
        yield "clean/", questions.filter(pl.col("label_error").is_null())


def view(questions: pl.DataFrame, name: str) -> tuple[pl.DataFrame, str]:
    """Return the rows and the column behind a name of metrics.json, such as ``type=multi-session/session/mrr``."""
    if name.startswith("type="):
        category, _, name = name.removeprefix("type=").partition("/")
        questions = questions.filter(pl.col("category") == category)
    elif name.startswith("clean/"):
        name = name.removeprefix("clean/")
        questions = questions.filter(pl.col("label_error").is_null())
    return questions, name.removesuffix("_mean") if name.removesuffix("_mean") in COSTS else name


def averages(questions: pl.DataFrame) -> dict[str, float]:
    """Average a per-question frame: overall, ``type=.../`` and ``clean/``; metrics that no question has are left out.

    ``questions`` counts the rows, ``questions/scored`` those that count in retrieval averages. The figures of
    ``macro_averages`` are among them.
    """
    figures: dict[str, float] = {}
    for prefix, rows in views(questions):
        figures[f"{prefix}questions"] = rows.height
        figures[f"{prefix}questions/scored"] = int(rows["scored"].sum())
        for metric in metric_names(questions):
            value = mean(rows[metric].drop_nulls())
            if value is not None:
                figures[prefix + averaged_name(metric)] = value
    return figures | {name: value for name, (value, _) in macro_averages(questions).items()}


def macro_averages(questions: pl.DataFrame) -> dict[str, tuple[float, int]]:
    """Average the metrics of ``PRINTED`` in two steps: name -> (mean of the parts' means, questions that define it).

    ``macro/type/...`` is the mean over question types, ``macro/corpus/...`` over conversations; each is left out where
    there are fewer than two parts, or where every part has one question. The plain figure is the mean over questions,
    called micro. The macro figures of MTEB's LMEB tasks (Zhao et al., arXiv 2603.12572) are those over types: a task
    such as LoCoMo has one subset for each type, and the score of a task is the unweighted mean of its subsets.

    >>> rows = pl.DataFrame({"category": ["a", "a", "b"], "corpus": [0, 1, 2], "turn/ndcg@10": [1.0, 0.0, 1.0]})
    >>> macro_averages(rows)
    {'macro/type/turn/ndcg@10': (0.75, 3)}
    """
    figures = {}
    for part, column in (("type", "category"), ("corpus", "corpus")):
        for metric in (m for m in PRINTED if m in questions.columns):
            rows = questions.drop_nulls([column, metric])
            parts = rows.partition_by(column)
            if 1 < len(parts) < rows.height:
                average = mean(value for one in parts if (value := mean(one[metric])) is not None)
                if average is not None:
                    figures[f"macro/{part}/{metric}"] = average, rows.height
    return figures
