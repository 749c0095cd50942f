"""Pairs of a question and a turn, with what their features are made from: texts, neighbours, places in the session.

Rows are looked up as plain numbers: for one question of a live memory some twenty joins take longer than all the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from memlab.learn.ranker.signals import Ints
from memlab.pipeline.tables import SESSION, Tables, with_text


@dataclass(frozen=True)
class Pairs:
    """The first turns of each question.

    head: question, unit, corpus, session, turn, rank. asked: the questions, with their texts; question: (n,) the
    row there of each pair's. said: the turns of the pairs and their neighbours in the order of the sessions, with their
    texts, ``place`` in the session and its ``size``; here: (n,) the row there of each pair's turn; before, behind: (t,)
    the rows there of the neighbours of each turn, -1 where there is none.
    """

    head: pl.DataFrame
    asked: pl.DataFrame
    question: Ints
    said: pl.DataFrame
    here: Ints
    before: Ints
    behind: Ints

    @classmethod
    def of(cls, head: pl.DataFrame, tables: Tables) -> Pairs:
        """Look up the questions and turns of these rows."""
        asked, turns = asked_texts(tables), tables["turns"]
        sessions, width = int(turns["session"].max() or 0) + 1, int(turns["turn"].max() or 0) + 2  # type: ignore[arg-type]

        def key_of(rows: pl.DataFrame) -> Ints:
            corpus, session, turn = (numbers(rows[name]) for name in (*SESSION, "turn"))
            return (corpus * sessions + session) * width + turn

        keys, own = key_of(turns), key_of(head)
        wanted = np.unique(np.concatenate([own - 1, own, own + 1]))
        at = find(keys, wanted)
        known, keys = wanted[at >= 0], np.sort(keys, kind="stable")
        start, end = (np.searchsorted(keys, (known // width + step) * width) for step in (0, 1))
        said = turns[at[at >= 0]]
        texts = with_text(pl.concat([said.select("text_id"), asked.select("text_id")]), tables["texts"])["text"]
        said = said.with_columns(texts.head(said.height).fill_null(""), pl.Series("size", end - start),
                                 pl.Series("place", np.searchsorted(keys, known) - start))
        asked = asked.with_columns(texts.tail(asked.height).fill_null(""))
        return cls(head, asked, find(numbers(asked["question"]), numbers(head["question"])), said, find(known, own),
                   find(known, known - 1), find(known, known + 1))


def asked_texts(tables: Tables) -> pl.DataFrame:
    """Return the questions; where a control searches with another question's words, with the id of those."""
    asked = tables["questions"].select("question", "corpus", "asked_on", "text_id")
    wrong = tables["queries"].filter(pl.col("kind") == "wrong").select("question", pl.col("text_id").alias("other"))
    if not wrong.height:
        return asked
    return asked.join(wrong, on="question", how="left", maintain_order="left").with_columns(
        pl.coalesce("other", "text_id").alias("text_id")).drop("other")


def numbers(column: pl.Series) -> Ints:
    """Return a column of whole numbers, (n,)."""
    return column.to_numpy().astype(np.int64)


def find(keys: Ints, wanted: Ints) -> Ints:
    """Return the place of each wanted key among distinct keys in any order, -1 where it is missing."""
    order = np.argsort(keys, kind="stable")
    at = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    return np.where(keys[at] == wanted, at, -1)
