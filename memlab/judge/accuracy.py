"""The accuracy table by question type, as LongMemEval's scripts print it, with intervals."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from memlab.evaluate.intervals import wilson
from memlab.tables import Tables

_LIMIT = "the judge's max_tokens (judge.max_tokens)"


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


def remarks(verdicts: pl.DataFrame) -> list[str]:
    """Return what must be read beside one judge's accuracy: answers without a verdict, and incomplete replies.

    >>> for line in remarks(pl.DataFrame({"correct": [None, True], "fault": ["are empty", None]})): print(line)
    1 of 2 answers without a verdict, left out of the accuracy and of paired tests: 1 reply is empty. Raise the \
judge's max_tokens (judge.max_tokens), or let its model think less (judge_chat.reasoning_effort).
    """
    if "fault" not in verdicts.columns:  # the file leaves it out where no reply has one
        verdicts = verdicts.with_columns(pl.lit(None, pl.String).alias("fault"))
    lines = []
    without, counted = (verdicts.filter(test) for test in (
        pl.col("correct").is_null(), pl.col("correct").is_not_null() & pl.col("fault").is_not_null()))
    if without.height:
        lines.append(f"{without.height:,} of {verdicts.height:,} answers without a verdict, left out of the accuracy "
                     f"and of paired tests: {_reasons(without)}.{_advice(without, f'Raise {_LIMIT}')}")
    if counted.height:
        lines.append(f"{_reasons(counted)}, and counted as the judge's script counts them: "
                     f"{int(counted['correct'].sum()):,} right, {int((~counted['correct']).sum()):,} wrong."
                     + _advice(counted, "The script's limit is fixed: take a model that does not think"))
    return lines


def _reasons(verdicts: pl.DataFrame) -> str:
    counts = verdicts.group_by("fault", maintain_order=True).len().iter_rows()
    return ", ".join(_replies(n, fault) if fault else f"{n:,} without a gold answer or with an undecided reply"
                     for fault, n in counts)


def _replies(n: int, fault: str) -> str:
    verb, _, rest = fault.partition(" ")
    one = {"are": "is", "were": "was"}.get(verb, verb)
    return f"1 reply {one} {rest}" if n == 1 else f"{n:,} replies {fault}"


def _advice(verdicts: pl.DataFrame, first: str) -> str:
    """Return what helps if replies or prompts have no room; "" if all had."""
    faults = " ".join(verdicts["fault"].drop_nulls().unique())
    short, long = "empty" in faults or "max_tokens" in faults, "window" in faults
    return (f" {first}, or let its model think less (judge_chat.reasoning_effort)." * short
            + " Raise judge_chat.window, as far as the server's model reaches." * long)


def mean_of_types(rows: list[AccuracyRow]) -> float | None:
    """Return the task-averaged accuracy: the mean of the types' shares."""
    shares = [row.right / row.n for row in rows[:-2] if row.n]
    return sum(shares) / len(shares) if shares else None


def format_table(rows: list[AccuracyRow]) -> list[str]:
    """Return the lines of the table; the mean score is shown if there are scores other than right and wrong.

    The accuracy is right / n, and n counts the answers with a verdict.

    >>> row = AccuracyRow("multi-session", 4, 3, .75, 0)
    >>> for line in format_table([row, row._replace(name="overall", open=1)]): print(line)
    type              n  right  accuracy  95 % interval   without a verdict
    multi-session     4      3     .7500  .3006 to .9544                  0
    overall           4      3     .7500  .3006 to .9544                  1
    """
    graded = any(row.n and row.score is not None and abs(row.score - row.right / row.n) > 1e-9 for row in rows)
    width = max([16, *(len(row.name) + 2 for row in rows)])
    lines = [f"{'type':<{width}}{'n':>3}  right  accuracy  95 % interval " + ("    mean score" if graded else "")
             + "  without a verdict"]
    for row in rows:
        interval = wilson(row.right, row.n)
        accuracy = decimal(row.right / row.n if row.n else None)
        span = f"{decimal(interval[0])} to {decimal(interval[1])}" if interval else "-"
        score = f"  {decimal(row.score):>11}" if graded else ""
        lines.append(f"{row.name:<{width}}{row.n:>3}  {row.right:>5}  {accuracy:>8}  {span:<14}{score}{row.open:>19}")
    return lines


def decimal(value: float | None) -> str:
    """Format a share with four decimals and no leading zero; "-" for None.

    >>> decimal(.25), decimal(1.0), decimal(None)
    ('.2500', '1.0000', '-')
    """
    if value is None:
        return "-"
    return f"{value:.4f}".removeprefix("0")
