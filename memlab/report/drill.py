"""The data behind the report's per-question drill-down, small enough to travel inside the page.

Arms that rank alike share one ranking, texts are stored once, and questions on which arms differ come first, so
that a large benchmark keeps what is worth reading when the budget is spent.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import polars as pl

from memlab.report.folders import ArmRun
from memlab.report.words import clean, known, one_line

BUDGET = 4_000_000
"""Characters of JSON; with plotly's 4.8 MB a page stays under 10 MB."""

SHOWN, SIGNALS, LETTERS = 20, 8, 320
"""Units a question, signals a unit, letters a text."""

_FIXED = {"question", "unit", "level", "session", "turns", "tokens", "score", "rank", "selected"}


def drill_down(arms: Sequence[ArmRun], metrics: Sequence[str], budget: int = BUDGET) -> dict[str, Any]:
    """Collect the questions with every arm's ranking, evidence, selection and cut.

    Rankings are shared between arms: an arm's entry names one by number, and its own selection as a string of 0
    and 1, one a row. A row is [unit, session, date, tokens, score, gold, text number, signals...].
    """
    signals = list(dict.fromkeys(c for arm in arms for c in arm.ranking.columns if c not in _FIXED))[:SIGNALS]
    details = [_details(arm, signals) for arm in arms]
    heads = _heads(arms, metrics)
    texts: dict[str, int] = {}
    out: list[dict[str, Any]] = []
    spent, left_out = 0, 0
    for head in sorted(heads, key=lambda h: (not h["differs"], h["q"])):
        fresh = len(texts)
        entry = _entry(head, details, texts)
        size = len(json.dumps(entry, ensure_ascii=False)) + sum(len(t) + 4 for t in list(texts)[fresh:])
        if spent + size > budget:
            for text in list(texts)[fresh:]:
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
            head["values"][i] = [round(row[m], 4) if known(row.get(m)) else None for m in metrics]
    for head in heads.values():
        columns = zip(*head["values"])
        head["differs"] = any(len({v for v in column if v is not None}) > 1 for column in columns)
    return list(heads.values())


def _details(arm: ArmRun, signals: Sequence[str]) -> dict[int, tuple[list[list[Any]], str]]:
    """Question -> its shown rows, best first, and which of them the arm selected."""
    have = [s for s in signals if s in arm.ranking.columns]
    keys = ["question", "rank"]
    extra = [c for c in ("tokens", "score", *have) if c in arm.ranking.columns]
    table = (arm.shown.filter(pl.col("rank") <= SHOWN)
             .join(arm.ranking.select(*keys, *extra).unique(keys), on=keys, how="left").sort(keys))
    out: dict[int, tuple[list[list[Any]], str]] = {}
    for row in table.iter_rows(named=True):
        rows, chosen = out.get(row["question"], ([], ""))
        said = row["said_on"].date().isoformat() if row["said_on"] is not None else ""
        rows.append([row["unit"], row["session"], said, _short(row.get("tokens"), 0), _short(row.get("score")),
                     int(bool(row["gold"])), _trim(row["text"] or ""), *(_short(row.get(s)) for s in signals)])
        out[row["question"]] = (rows, chosen + ("1" if row["selected"] else "0"))
    return out


def _entry(head: dict[str, Any], details: Sequence[dict[int, tuple[list[list[Any]], str]]],
           texts: dict[str, int]) -> dict[str, Any]:
    rankings: list[list[list[Any]]] = []
    which: list[list[Any] | None] = []
    for detail in details:
        if head["q"] not in detail:
            which.append(None)
            continue
        rows, chosen = detail[head["q"]]
        numbered = [[*row[:6], texts.setdefault(row[6], len(texts)), *row[7:]] for row in rows]
        if numbered not in rankings:
            rankings.append(numbered)
        which.append([rankings.index(numbered), chosen])
    return {**head, "rankings": rankings, "which": which}


def _short(value: Any, places: int = 3) -> float | None:
    return round(float(value), places) if known(value) else None


def _trim(text: str) -> str:
    text = clean(text).strip()
    return text if len(text) <= LETTERS else text[: LETTERS - 1].rstrip() + "…"
