"""Features of (question, turn) pairs: the signals of a ranking, standardised within the question, and the texts.

Nothing here sees a label, an id of a benchmark, or the order of a file. All figures of a question come from its own
ranking and corpus, so that a part of the corpora gives the same features as the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import polars as pl
from polars import selectors as cs

from memlab.errors import MemlabError
from memlab.learn.ranker.dates import date_features
from memlab.learn.ranker.likeness import Terms, likeness_features, turn_terms
from memlab.learn.ranker.overlap import overlap_features
from memlab.learn.ranker.signals import signal_features
from memlab.learn.ranker.texts import nearby, question_features, turn_features
from memlab.runtime.cores import usable_cores
from memlab.tables import SESSION, Tables

NEEDED = ("ranking", "units", "questions", "queries", "turns", "texts", "sessions")
"""Tables that the features are made from."""

PAIR = ["question", "unit"]

COLUMNS = ("turn", "question", "signals", "overlap", "dates", "likeness")
"""Order of the parts: trees draw features by their places, so another order gives other fits."""


def features(tables: Tables, depth: int, alone: bool = False, terms: Terms | None = None) -> pl.DataFrame:
    """Return (question, unit, one Float32 column per feature) for the first ``depth`` turns of each question.

    Rows are in the order of the ranking. Where a control searches with another question's words, its text is that of
    the question here too. ``alone`` leaves only what the turn tells by itself and the question by itself. ``terms`` are
    those of the first turns (``turn_terms``), if they are known. Raises MemlabError if the units are not turns.
    """
    wrong = tables["queries"].filter(pl.col("kind") == "wrong").select("question", pl.col("text_id").alias("other"))
    asked = tables["questions"].join(wrong, on="question", how="left", maintain_order="left")
    tables = tables.updated({"questions": asked.with_columns(
        pl.coalesce("other", "text_id").alias("text_id")).drop("other")})
    ranking, units = tables["ranking"], tables["units"]
    if not units["level"].eq("turn").all():
        raise MemlabError("learned fusion ranks turns; these units are of another level", where="learn/ranker",
                          fix="rank at level turn, and roll up behind it")
    placed = ranking.join(units.select("unit", *SESSION, pl.col("turns").list.first().alias("turn")), on="unit",
                          maintain_order="left")
    head = placed.filter(pl.col("rank") <= depth)
    said, here = nearby(head, tables)
    makers: dict[str, Callable[[], pl.DataFrame]] = {} if alone else {  # those that take longest first
        "signals": lambda: signal_features(placed, depth),
        "overlap": lambda: overlap_features(head, said, here, tables),
        "likeness": lambda: likeness_features(head, turn_terms(head, tables) if terms is None else terms),
        "dates": lambda: date_features(head, tables)}
    makers |= {"turn": lambda: turn_features(head, said, here, tables),
               "question": lambda: question_features(head, tables)}
    with ThreadPoolExecutor(usable_cores()) as pool:  # NumPy and Polars compute outside Python's lock
        made = dict(zip(makers, pool.map(lambda make: make().cast(pl.Float32), makers.values())))
    rows = pl.concat([head.select(PAIR), *(made[name] for name in COLUMNS if name in made)], how="horizontal")
    return rows.drop(cs.starts_with("speaker named")) if alone else rows
