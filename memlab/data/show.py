"""Display of one question with its gold and evidence in a terminal."""

from __future__ import annotations

from difflib import get_close_matches

import polars as pl

from memlab.errors import MemlabError
from memlab.runtime.numbers import whole_number
from memlab.tables import Tables, with_text
from memlab.text.display import sanitise

WIDTH = 600
"""Characters of a turn that are shown; the longest official turn has 76,560."""


def show(tables: Tables, id_or_number: str) -> str:
    """Describe the question with a benchmark id, else with a number; raise MemlabError if there is none."""
    question, name = _find(tables, id_or_number)
    row = with_text(tables["questions"].filter(pl.col("question") == question), tables["texts"]).row(0, named=True)
    gold = tables["gold"].filter(pl.col("question") == question).row(0, named=True)
    answer = "(decline)" if gold["answer"] is None else gold["answer"]
    lines = [
        f"question {question} ({sanitise(name)}) of corpus {row['corpus']}, asked on {row['asked_on']}",
        f"  {sanitise(row['text'], WIDTH)}",
        f"answer: {sanitise(answer, WIDTH)}",
        f"type: {sanitise(gold['category'])}" + (", to be declined" if gold["abstain"] else "")
        + ("" if gold["scored"] else ", not scored in retrieval"),
    ]
    if gold["label_error"] is not None:
        lines.append(f"label error: {sanitise(gold['label_error'])}")
    return "\n".join([*lines, *_evidence(tables, question, row["corpus"])])


def _find(tables: Tables, id_or_number: str) -> tuple[int, str]:
    questions = tables["ids"].filter(pl.col("kind") == "question")
    # a benchmark's id first: some consist of digits only
    rows = questions.filter(pl.col("name") == id_or_number)
    if rows.is_empty() and (number := whole_number(id_or_number)) is not None:
        rows = questions.filter(pl.col("question") == number)
    if rows.is_empty():
        names = questions["name"].to_list()
        close = ", ".join(f"'{name}'" for name in get_close_matches(id_or_number, names))
        hint = f"did you mean {close}" if close else f"ids look like '{names[0]}'"
        raise MemlabError(f"there is no question '{id_or_number}'", fix=f"{hint}, or give a number")
    return rows["question"][0], rows["name"][0]


def _evidence(tables: Tables, question: int, corpus: int) -> list[str]:
    in_corpus = pl.col("corpus") == corpus
    turns = with_text(tables["turns"].filter(in_corpus), tables["texts"]).drop("corpus")
    rows = (
        tables["evidence"].filter(pl.col("question") == question)
        .join(tables["sessions"].filter(in_corpus), on="session")
        .join(turns, on=["session", "turn"], how="left")
        .sort("session", "turn", nulls_last=True)
    )
    sessions = tables["ids"].filter(in_corpus & (pl.col("kind") == "session"))
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
