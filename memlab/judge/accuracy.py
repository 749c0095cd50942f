"""The accuracy table by question type, as LongMemEval's scripts print it, with intervals."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from memlab.evaluate.intervals import wilson
from memlab.tables import Tables


class AccuracyRow(NamedTuple):
    """A row of the table: answers with a verdict, those right, their mean score, and answers without a verdict."""

    name: str
    n: int
    right: int
    score: float | None
    open: int


def accuracy_table(tables: Tables, verdicts: pl.DataFrame) -> list[AccuracyRow]:
    """Return a row for each question type, then "overall" and "abstention", for the verdicts of one judge.

    An abstention question counts in its own type too, as in the official scripts. An answer without a verdict counts
    in no share.
    """
    rows = verdicts.join(tables["gold"].select("question", "category", "abstain"), on="question")
    parts = [(str(name), rows.filter(pl.col("category") == name)) for name in rows["category"].unique().sort()]
    parts += [("overall", rows), ("abstention", rows.filter("abstain"))]
    return [_row(name, part) for name, part in parts]


def _row(name: str, part: pl.DataFrame) -> AccuracyRow:
    judged = part.filter(pl.col("correct").is_not_null())
    mean = judged["score"].mean()
    return AccuracyRow(name, judged.height, int(judged["correct"].sum()), mean if isinstance(mean, float) else None,
               part.height - judged.height)


def mean_of_types(rows: list[AccuracyRow]) -> float | None:
    """Return the task-averaged accuracy: the mean of the types' shares."""
    shares = [row.right / row.n for row in rows[:-2] if row.n]
    return sum(shares) / len(shares) if shares else None


def format_table(rows: list[AccuracyRow]) -> list[str]:
    """Return the lines of the table; the mean score is shown if there are scores other than right and wrong.

    >>> row = AccuracyRow("multi-session", 4, 3, .75, 0)
    >>> for line in format_table([row, row._replace(name="overall", open=1)]): print(line)
    type              n  right  accuracy  95 % interval
    multi-session     4      3     .7500  .3006 to .9544
    overall           4      3     .7500  .3006 to .9544  (1 without a verdict)
    """
    graded = any(row.n and row.score is not None and abs(row.score - row.right / row.n) > 1e-9 for row in rows)
    width = max([16, *(len(row.name) + 2 for row in rows)])
    lines = [f"{'type':<{width}}{'n':>3}  right  accuracy  95 % interval" + ("     mean score" if graded else "")]
    for row in rows:
        interval = wilson(row.right, row.n)
        accuracy = decimal(row.right / row.n if row.n else None)
        span = f"{decimal(interval[0])} to {decimal(interval[1])}" if interval else "-"
        score = f"  {decimal(row.score):>11}" if graded else ""
        note = f"  ({row.open} without a verdict)" if row.open else ""
        lines.append(f"{row.name:<{width}}{row.n:>3}  {row.right:>5}  {accuracy:>8}  {span:<14}{score}{note}".rstrip())
    return lines


def decimal(value: float | None) -> str:
    """Format a share with four decimals and no leading zero; "-" for None.

    >>> decimal(.25), decimal(1.0), decimal(None)
    ('.2500', '1.0000', '-')
    """
    if value is None:
        return "-"
    return f"{value:.4f}".removeprefix("0")
