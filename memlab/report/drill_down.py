"""The data behind the report's per-question drill-down, small enough to travel inside the page.

Arms that rank alike share one ranking, texts are stored once, and questions on which arms differ come first, so
that a large benchmark keeps what is worth reading when the budget is spent.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import polars as pl

from memlab.harness.results import ArmRun
from memlab.text.display import clean, is_number, one_line

BUDGET = 4_000_000
"""Bytes of JSON; with plotly's 4.8 MB a page stays under 10 MB."""

SHOWN, SIGNALS, LETTERS = 20, 8, 320
"""Units a question, signals a unit, letters a text."""

ANSWER_LETTERS = 1_200
"""Letters of a reader's answer."""

_FIXED = {"question", "unit", "level", "session", "turns", "tokens", "score", "rank", "selected"}


def drill_down(arms: Sequence[ArmRun], metrics: Sequence[str], budget: int = BUDGET) -> dict[str, Any]:
    """Collect the questions with every arm's ranking, evidence, selection and cut.

    Rankings are shared between arms: an arm's entry names one by number, and its own selection as a string of 0
    and 1, one a row. A row is [unit, session, date, tokens, score, gold, text number, signals...].
    """
    signals = list(dict.fromkeys(c for arm in arms for c in arm.ranking.columns if c not in _FIXED))[:SIGNALS]
    details = _details(arms, signals)
    heads = _heads(arms, metrics)
    texts: dict[str, int] = {}
    out: list[dict[str, Any]] = []
    spent, left_out = 0, 0
    for head in sorted(heads, key=lambda h: (not h["differs"], h["q"])):
        fresh = len(texts)
        entry = _entry(head, details, texts)
        size = _bytes(entry) + sum(_bytes(t) + 1 for t in islice(texts, fresh, None))
        if spent + size > budget:
            for text in list(islice(texts, fresh, None)):
                del texts[text]
            left_out += 1
            continue
        spent += size
        out.append(entry)
    return {"arms": [{"name": one_line(a.name), "oracle": a.oracle} for a in arms], "metrics": list(metrics),
            "signals": [one_line(s) for s in signals], "texts": list(texts),
            "questions": sorted(out, key=lambda e: e["q"]), "left_out": left_out}


def _heads(arms: Sequence[ArmRun], metrics: Sequence[str]) -> list[dict[str, Any]]:
    """One head a question: its words and, an arm, its metrics (None where undefined or absent)."""
    heads: dict[int, dict[str, Any]] = {}
    for i, arm in enumerate(arms):
        for row in arm.questions.iter_rows(named=True):
            head = heads.setdefault(row["question"], {
                "q": row["question"], "text": one_line(row["text"]), "answer": clean(row["answer"] or "")[:600],
                "type": one_line(row["category"] or ""), "abstain": bool(row["abstain"]),
                "scored": bool(row["scored"]), "error": one_line(row["label_error"] or ""),
                "values": [[None] * len(metrics) for _ in arms]})
            head["values"][i] = [round(row[m], 4) if is_number(row.get(m)) else None for m in metrics]
    for i, arm in enumerate(arms):
        for question, text, verdict in _said(arm):
            if question in heads:
                heads[question].setdefault("said", [None] * len(arms))[i] = [clean(text)[:ANSWER_LETTERS], verdict]
    for head in heads.values():
        columns = zip(*head["values"])
        head["differs"] = any(len({v for v in column if v is not None}) > 1 for column in columns)
    return list(heads.values())


def _said(arm: ArmRun) -> list[tuple[int, str, str]]:
    """Return (question, the first sample's answer, the judges' verdicts in words)."""
    if arm.answers is None:
        return []
    told: dict[int, list[str]] = {}
    for row in [] if arm.verdicts is None else arm.verdicts.iter_rows(named=True):
        word = {True: "right", False: "wrong", None: "unreadable"}[row["correct"]]
        told.setdefault(row["question"], []).append(f"{one_line(row['judge'])}: {word}")
    first = arm.answers.filter(pl.col("sample") == 0)
    return [(question, text or "", ", ".join(told.get(question, [])))
            for question, text in first.select("question", "text").iter_rows()]


@dataclass(frozen=True)
class _Detail:
    """One arm's shown units: question -> rows, best first, and question -> which were selected, as 0 and 1."""

    frame: pl.DataFrame
    rows: dict[int, list[list[Any]]]
    chosen: dict[int, str]


def _details(arms: Sequence[ArmRun], signals: Sequence[str]) -> list[_Detail]:
    """Read every arm's units; arms that rank alike get the same row objects, made once."""
    out: list[_Detail] = []
    for arm in arms:
        frame, chosen = _frame(arm, signals)
        like = next((made for made in out if made.frame.equals(frame)), None)
        rows: dict[int, list[list[Any]]] = {}
        if like is None:
            for question, *row in frame.iter_rows():
                rows.setdefault(question, []).append(row)
        out.append(_Detail(frame, like.rows if like else rows, chosen))
    return out


def _frame(arm: ArmRun, signals: Sequence[str]) -> tuple[pl.DataFrame, dict[int, str]]:
    keys, figures = ["question", "rank"], ["tokens", "score", *signals]
    have = [c for c in figures if c in arm.ranking.columns]
    table = (arm.shown.filter(pl.col("rank") <= SHOWN)
             .join(arm.ranking.select(*keys, *have).unique(keys), on=keys, how="left").sort(keys)
             .with_columns(pl.lit(None, pl.Float64).alias(c) for c in figures if c not in have))
    texts = table["text"].unique().drop_nulls()
    short = pl.DataFrame({"text": texts, "short": [_trim(t) for t in texts]}, schema=dict.fromkeys(
        ("text", "short"), pl.String))
    rows = table.join(short, on="text", how="left", maintain_order="left").select(
        "question", "unit", "session", pl.col("said_on").dt.strftime("%Y-%m-%d").fill_null(""),
        pl.col("tokens").cast(pl.Float64).fill_nan(None).round(0), _rounded("score"),
        pl.col("gold").fill_null(False).cast(pl.Int8), pl.col("short").fill_null(""), *map(_rounded, signals))
    flags = table.group_by("question").agg(pl.col("selected").fill_null(False).cast(pl.Int8).cast(pl.String).str.join())
    return rows, dict(flags.iter_rows())


def _rounded(column: str) -> pl.Expr:
    value = pl.col(column).cast(pl.Float64)
    return pl.when(value.is_finite()).then(value.round(3)).alias(column)


def _entry(head: dict[str, Any], details: Sequence[_Detail], texts: dict[str, int]) -> dict[str, Any]:
    rankings: list[list[list[Any]]] = []
    place: dict[int, int] = {}
    which: list[list[Any] | None] = []
    for detail in details:
        rows = detail.rows.get(head["q"])
        if rows is None:
            which.append(None)
            continue
        if id(rows) not in place:
            numbered = [[*row[:6], texts.setdefault(row[6], len(texts)), *row[7:]] for row in rows]
            if numbered not in rankings:
                rankings.append(numbered)
            place[id(rows)] = rankings.index(numbered)
        which.append([place[id(rows)], detail.chosen[head["q"]]])
    return {**head, "rankings": rankings, "which": which}


def _bytes(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))


def _trim(text: str) -> str:
    text = clean(text).strip()
    return text if len(text) <= LETTERS else text[: LETTERS - 1].rstrip() + "…"
