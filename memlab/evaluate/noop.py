"""The no-op detector: whether an arm changed any output of its comparator.

A technique that changes no output has no effect to test; that must read "changed nothing", never "no effect".
"""

from __future__ import annotations

import polars as pl

OUTPUTS = ("ranking", "selection", "context", "answers")

KEPT_RANKS = 200
"""Ranks per question that a run folder keeps; deeper ones are kept only where selected, so they are not compared."""


def identical(ranking: pl.DataFrame, context: pl.DataFrame, other_ranking: pl.DataFrame,
              other_context: pl.DataFrame, answers: pl.DataFrame | None = None,
              other_answers: pl.DataFrame | None = None) -> list[str]:
    """Return the outputs, of ``OUTPUTS``, that are the same in two arms.

    Rankings are the same if every rank holds the same unit: unit numbers are compared together with level,
    session and turns where both frames have them, since two chunkings can give one number to different memories.
    Scores are not compared. Contexts are the same if they show the same texts in the same order. Where neither arm
    has a reader, their answers count as the same.
    """
    about = [c for c in ("level", "session", "turns") if c in ranking.columns and c in other_ranking.columns]
    pairs = {
        "ranking": [frame.filter(pl.col("rank") <= KEPT_RANKS).select("question", "rank", "unit", *about)
                    for frame in (ranking, other_ranking)],
        "selection": [frame.filter("selected").select("question", "unit", *about)
                      for frame in (ranking, other_ranking)],
        "context": [frame.select("question", "position", "text_id") for frame in (context, other_context)],
    }
    if answers is not None and other_answers is not None:
        pairs["answers"] = [frame.select("question", "sample", "text") for frame in (answers, other_answers)]
    no_reader = answers is None and other_answers is None
    return [name for name in OUTPUTS if (_same(*pairs[name]) if name in pairs else no_reader)]


def _same(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    key = one.columns[:2]
    return one.sort(key).equals(other.sort(key))
