"""One question with its gold and evidence, as text for a terminal."""

from __future__ import annotations

from difflib import get_close_matches

import polars as pl

from memlab.errors import MemlabError
from memlab.tables import Tables, with_text
from memlab.text.display import sanitise

WIDTH = 600
"""Characters of a turn that are shown; the longest official turn has 76,560."""


def show(tables: Tables, wanted: str) -> str:
    """Describe the question of that benchmark id, else of that integer; raises MemlabError if there is none."""
    question, name = _find(tables, wanted)
    asked = with_text(tables["questions"].filter(pl.col("question") == question), tables["texts"]).row(0, named=True)
    gold = tables["gold"].filter(pl.col("question") == question).row(0, named=True)
    answer = "(decline)" if gold["answer"] is None else gold["answer"]
    lines = [
        f"question {question} ({sanitise(name)}) of corpus {asked['corpus']}, asked on {asked['asked_on']}",
        f"  {sanitise(asked['text'], WIDTH)}",
        f"answer: {sanitise(answer, WIDTH)}",
        f"type: {sanitise(gold['category'])}" + (", to be declined" if gold["abstain"] else "")
        + ("" if gold["scored"] else ", not scored in retrieval"),
    ]
    if gold["label_error"] is not None:
        lines.append(f"label error: {sanitise(gold['label_error'])}")
    return "\n".join([*lines, *_evidence(tables, question, asked["corpus"])])


def _find(tables: Tables, wanted: str) -> tuple[int, str]:
    named = tables["ids"].filter(pl.col("kind") == "question")
    # a benchmark's id first: some consist of digits only
    rows = named.filter(pl.col("name") == wanted)
    if rows.is_empty() and wanted.isdecimal():
        rows = named.filter(pl.col("question") == int(wanted))
    if rows.is_empty():
        nearest = _nearest(wanted, named["name"].to_list())
        raise MemlabError(f"there is no question '{wanted}'", fix=f"{nearest}, or give a number")
    return rows["question"][0], rows["name"][0]


def _nearest(wanted: str, names: list[str]) -> str:
    close = get_close_matches(wanted, names, n=3)
    return "did you mean " + ", ".join(f"'{name}'" for name in close) if close else f"ids look like '{names[0]}'"


def _evidence(tables: Tables, question: int, corpus: int) -> list[str]:
    here = pl.col("corpus") == corpus
    turns = with_text(tables["turns"].filter(here), tables["texts"]).drop("corpus")
    rows = (
        tables["evidence"].filter(pl.col("question") == question)
        .join(tables["sessions"].filter(here), on="session")
        .join(turns, on=["session", "turn"], how="left")
        .sort("session", "turn", nulls_last=True)
    )
    sessions = tables["ids"].filter(here & (pl.col("kind") == "session"))
    names = dict(sessions.select("session", "name").iter_rows())
    lines = ["evidence:" if rows.height else "evidence: none that can be found"]
    for row in rows.iter_rows(named=True):
        place = f"  session {row['session']} ({sanitise(names[row['session']])}) of {row['said_on']}"
        if row["turn"] is None:
            lines.append(f"{place}: the session as a whole")
        else:
            lines.append(f"{place}, turn {row['turn']}, {sanitise(row['speaker'] or row['role'])}: "
                         f"{sanitise(row['text'], WIDTH)}")
    return lines
