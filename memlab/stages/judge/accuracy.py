"""The accuracy table by question type, as LongMemEval's scripts print it, with warnings about the judge."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from memlab.evaluate.statistics import wilson
from memlab.pipeline.tables import Tables
from memlab.support.errors import MemlabError
from memlab.support.text.display import format_number, is_number, safe_line

CALIBRATION_FILE = "calibration.json"
"""The file in the root of the runs that ``memlab experiment judge_calibration`` writes by default."""

MIN_SPECIFICITY = 0.9
"""A judge that lets more than one wrong answer in ten pass inflates every accuracy that it is used for."""


OWN_WORDS = {"longmemeval_style": "LongMemEval's", "memorystack": "MemoryStack's"}
"""Judges that follow a published rule in memlab's own words, and whose rule it is."""


def needs_warning(specificity: float | None) -> bool:
    """Return whether a judge's specificity is unknown, or too low to show its accuracies without a warning.

    >>> needs_warning(.84), needs_warning(.95), needs_warning(None)
    (True, False, True)
    """
    return specificity is None or specificity < MIN_SPECIFICITY


def bias(specificity: float | None, sensitivity: float | None) -> str:
    """Describe the direction in which a judge's accuracies are biased.

    If a share a of the answers is right, the judge calls a * sensitivity + (1 - a) * (1 - specificity) of them right.
    The two kinds of error cancel out at a = (1 - specificity) / (2 - specificity - sensitivity).

    >>> bias(.86, 1.0), bias(None, .9)
    ('too high', 'not to be trusted')
    >>> bias(.86, .59)
    'too high where fewer than 25 % of the answers are right, and too low where more are'
    """
    if specificity is None or sensitivity is None:
        return "not to be trusted"
    errors = 2 - specificity - sensitivity
    balance = round(100 * (1 - specificity) / errors) if errors else 100
    return "too high" if balance >= 100 else (
        f"too high where fewer than {balance} % of the answers are right, and too low where more are")


def judge_warnings(judges: Iterable[str], path: Path) -> list[str]:
    """Return a warning for each judge whose specificity in a calibration file is missing or too low.

    Judges with a published rule in memlab's own words (``OWN_WORDS``) get a warning of their own before it.

    A judge is looked up by its name alone: two configurations with the same name cannot be distinguished.
    """
    judges, warnings = list(judges), []
    try:
        calibrated = read_judges(path)
    except MemlabError as error:
        calibrated, warnings = {}, [f"FLAGGED: {safe_line(error)}."] if judges else []
    for judge in judges:
        figures, name = calibrated.get(judge, {}), safe_line(judge)
        specificity, sensitivity = (_share(figures.get(key)) for key in ("specificity", "sensitivity"))
        if judge in OWN_WORDS:
            warnings.append(f"Judge {name}: {OWN_WORDS[judge]} rules in memlab's own words; its accuracies cannot be "
                            "compared with published ones.")
        if specificity is None:
            warnings.append(f"FLAGGED: nobody has measured how many wrong answers the judge {name} lets through: "
                            f"memlab experiment judge_calibration --judge {name} ...")
        elif needs_warning(specificity):
            warnings.append(f"FLAGGED: the judge {name} calls {format_number(1 - specificity)} of synthetic wrong "
                            f"answers right (specificity {format_number(specificity)} on "
                            f"{safe_line(str(figures.get('data', '')))}, at least {MIN_SPECIFICITY:g} is wanted): "
                            f"accuracies by it are {bias(specificity, sensitivity)}.")
    return warnings


def _share(figure: object) -> float | None:
    """Return the value of a figure; None if it is no number from 0 to 1."""
    value = figure.get("value") if isinstance(figure, dict) else None
    return float(value) if is_number(value) and 0 <= value <= 1 else None


def read_judges(path: Path) -> dict[str, dict[str, Any]]:
    """Return each judge's figures in a calibration file; {} where there is no file.

    Raises MemlabError for a file that cannot be read: the figures of all judges are in it.
    """
    try:
        judges = json.loads(path.read_text(encoding="utf-8"))["judges"]
        if not isinstance(judges, dict) or not all(isinstance(figures, dict) for figures in judges.values()):
            raise TypeError("'judges' is not an object of objects")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise MemlabError(f"the calibration of judges cannot be read ({safe_line(error)[:120]})", where=path.name,
                          fix=f"repair {path.name}, or move it away and calibrate again") from error
    return judges


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
    """Return what must be read together with one judge's accuracy: answers without a verdict, and incomplete replies.

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


def arm_remarks(arm: str, verdicts: pl.DataFrame, judges: Iterable[str]) -> list[str]:
    """Return the ``remarks`` of some judges of an arm, each with the names of both."""
    return [f"{arm}, judge {safe_line(judge)}: {remark}" for judge in judges
            for remark in remarks(verdicts.filter(judge=judge))]


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
