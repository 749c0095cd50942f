"""The data of the report's per-question view, small enough to be part of the page.

Arms with the same ranking share it, texts are stored once, and questions on which arms differ come first, so that a
large benchmark keeps the most useful ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import polars as pl

from memlab.experiment.harness.results import ArmRun
from memlab.support.text.display import is_number, safe_line, safe_text

SHOWN, SIGNALS, CHARACTERS = 20, 8, 320
"""Units per question, signals per unit, characters per text."""

ANSWER_CHARACTERS = 1_200
"""Characters of a reader's answer."""

_FIXED = {"question", "unit", "level", "session", "turns", "tokens", "score", "rank", "selected"}


def drill_down(arms: Sequence[ArmRun], metrics: Sequence[str], most: int | None = None) -> dict[str, Any]:
    """Collect the questions with every arm's ranking, evidence, selection and cut, at most so many of them.

    Rankings are shared between arms: an arm's entry has the number of one, and its own selection as a string with a 0
    or 1 for each row. A row is [unit, session, date, tokens, score, gold, text number, signals...].
    """
    signals = list(dict.fromkeys(c for arm in arms for c in arm.ranking.columns if c not in _FIXED))[:SIGNALS]
    units, heads = [_units(arm, signals) for arm in arms], _heads(arms, metrics)
    texts: dict[str, int] = {}
    kept = sorted(heads, key=lambda head: (not head["differs"], head["q"]))[:most]
    entries = [_entry(head, units, texts) for head in kept]
    return {"arms": [{"name": safe_line(a.name), "oracle": a.oracle} for a in arms], "metrics": list(metrics),
            "signals": [safe_line(s) for s in signals], "texts": list(texts),
            "questions": sorted(entries, key=lambda entry: entry["q"]), "left_out": len(heads) - len(entries)}


def _heads(arms: Sequence[ArmRun], metrics: Sequence[str]) -> list[dict[str, Any]]:
    """Return one head per question: its text and, for each arm, its metrics (None where undefined or absent)."""
    heads: dict[int, dict[str, Any]] = {}
    for i, arm in enumerate(arms):
        for row in arm.questions.iter_rows(named=True):
            head = heads.setdefault(row["question"], {
                "q": row["question"], "text": safe_line(row["text"]), "answer": safe_text(row["answer"] or "")[:600],
                "type": safe_line(row["category"] or ""), "abstain": bool(row["abstain"]),
                "scored": bool(row["scored"]), "error": safe_line(row["label_error"] or ""),
                "values": [[None] * len(metrics) for _ in arms]})
            head["values"][i] = [round(row[m], 4) if is_number(row.get(m)) else None for m in metrics]
    for i, arm in enumerate(arms):
        for question, text, verdicts in _answers(arm):
            if question in heads:
                answer = safe_text(text)[:ANSWER_CHARACTERS]
                heads[question].setdefault("answers", [None] * len(arms))[i] = [answer, verdicts]
    for head in heads.values():
        columns = zip(*head["values"])
        head["differs"] = any(len({v for v in column if v is not None}) > 1 for column in columns)
    return list(heads.values())


def _answers(arm: ArmRun) -> list[tuple[int, str, str]]:
    """Return (question, the first sample's answer, the judges' verdicts in words)."""
    if arm.answers is None:
        return []
    verdicts: dict[int, list[str]] = {}
    for row in [] if arm.verdicts is None else arm.verdicts.iter_rows(named=True):
        word = {True: "right", False: "wrong", None: "no verdict"}[row["correct"]]
        verdicts.setdefault(row["question"], []).append(f"{safe_line(row['judge'])}: {word}")
    first = arm.answers.filter(pl.col("sample") == 0)
    return [(question, text or "", ", ".join(verdicts.get(question, [])))
            for question, text in first.select("question", "text").iter_rows()]


Rows = dict[int, list[list[Any]]]
"""Question -> rows of one arm's top units, best first."""


def _units(arm: ArmRun, signals: Sequence[str]) -> tuple[Rows, dict[int, str]]:
    """Return an arm's top units, and question -> whether each is selected, as 0 and 1."""
    keys, figures = ["question", "rank"], ["tokens", "score", *signals]
    present = [c for c in figures if c in arm.ranking.columns]
    table = (arm.shown.filter(pl.col("rank") <= SHOWN)
             .join(arm.ranking.select(*keys, *present).unique(keys), on=keys, how="left").sort(keys)
             .with_columns(pl.lit(None, pl.Float64).alias(c) for c in figures if c not in present))
    rows: Rows = {}
    for question, *row in table.select(
            "question", "unit", "session", pl.col("said_on").dt.strftime("%Y-%m-%d").fill_null(""),
            pl.col("tokens").cast(pl.Float64).fill_nan(None).round(0), _round("score"),
            pl.col("gold").fill_null(False).cast(pl.Int8), pl.col("text").fill_null(""),
            *map(_round, signals)).iter_rows():
        rows.setdefault(question, []).append(row)
    flags = table.group_by("question").agg(pl.col("selected").fill_null(False).cast(pl.Int8).cast(pl.String).str.join())
    return rows, dict(flags.iter_rows())


def _round(column: str) -> pl.Expr:
    value = pl.col(column).cast(pl.Float64)
    return pl.when(value.is_finite()).then(value.round(3)).alias(column)


def _entry(head: dict[str, Any], arms: Sequence[tuple[Rows, dict[int, str]]], texts: dict[str, int]) -> dict[str, Any]:
    """Add the distinct rankings of a question, and for each arm [number of its ranking, selection]."""
    rankings: list[list[list[Any]]] = []
    which: list[list[Any] | None] = []
    for units, selected in arms:
        rows = [[*row[:6], texts.setdefault(_trim(row[6]), len(texts)), *row[7:]] for row in units.get(head["q"], ())]
        if rows and rows not in rankings:
            rankings.append(rows)
        which.append([rankings.index(rows), selected[head["q"]]] if rows else None)
    return {**head, "rankings": rankings, "which": which}


@lru_cache(maxsize=100_000)
def _trim(text: str) -> str:
    text = safe_text(text).strip()
    return text if len(text) <= CHARACTERS else text[: CHARACTERS - 1].rstrip() + "…"
