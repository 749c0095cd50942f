"""Search results of a live memory: the hits of one question as a table, and the history of a topic."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import polars as pl

from memlab.errors import MemlabError
from memlab.pipeline import AFTER_ANSWERS, Pipeline
from memlab.rank.units import signals_of
from memlab.read.render import Value, render_units
from memlab.tables import GOLD, SESSION, Tables, as_of, with_text

RESULT = {"rank": pl.Int32, "score": pl.Float64, "selected": pl.Boolean, "said_on": pl.Datetime("us"),
          "session": pl.Int32, "turns": pl.List(pl.Int32), "text": pl.String}
"""Columns of every result; further ones are the signals, one a lane, boost or reranker."""


def without_judges(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline as it answers one question that nobody has labelled: without judges.

    Raises MemlabError where a stage before the answer looks at gold.
    """
    for slot, stage in pipeline.stages():
        seen = sorted(GOLD & set(stage.reads))
        if seen and slot not in AFTER_ANSWERS:
            raise MemlabError(f"{type(stage).__name__} reads {', '.join(seen)}, which a question of your own has not",
                              where=slot, fix="choose a technique there that does without labels")
    return pipeline.without(*AFTER_ANSWERS)


def results(tables: Tables, pipeline: Pipeline, k: int | None = None) -> pl.DataFrame:
    """Return the first ``k`` ranks of the one question in ``tables``, or, for null, what was selected.

    Columns: those of ``RESULT``, then the signals. ``text`` is what a reader would be shown, its day on top.
    """
    ranking = tables["ranking"].filter(pl.col("selected") if k is None else pl.col("rank") <= k).sort("rank")
    units = tables["units"].join(ranking.select("unit"), on="unit", how="semi")
    value: Value = getattr(pipeline.measure, "value", "unit")
    return (
        ranking.join(units.select("unit", *SESSION, "turns"), on="unit", how="left", maintain_order="left")
        .join(tables["sessions"], on=SESSION, how="left", maintain_order="left")
        .join(render_units(units, tables, value), on="unit", how="left", maintain_order="left")
        .select(*RESULT, *signals_of(ranking))
    )


@dataclass(frozen=True)
class SearchResult:
    """All that one question brings to light.

    context: what the reader is shown, in its order, before its window may cut it. graph: the block of what is known of
    the people and things in the question, if there is one. answer: the reader's, if there is one.
    """

    question: str
    asked_on: datetime | None
    results: pl.DataFrame
    context: list[str]
    graph: str | None
    answer: str | None

    @classmethod
    def of(cls, tables: Tables, results: pl.DataFrame) -> SearchResult:
        """Read the tables of the one question."""
        questions, answers, rows = (with_text(tables[name], tables["texts"])
                                    for name in ("questions", "answers", "context"))
        (asked,) = questions.iter_rows(named=True)
        said = answers.filter(pl.col("sample") == 0)["text"].to_list()
        rows = rows.sort("position")
        blocks = rows.filter(pl.col("unit").is_null())["text"].to_list()
        items = rows.filter(pl.col("unit").is_not_null())["text"].to_list()
        return cls(asked["text"], asked["asked_on"], results, items, "\n\n".join(blocks) or None,
                   said[0] if said else None)


def history(tables: Tables, found: pl.DataFrame) -> pl.DataFrame:
    """Return the memories behind some results in the order of time, with the span in which each held.

    Of several memories of a result's turns (a turn, its round, its session) those that name fewest turns count: facts
    and turns before sessions. ``valid_from`` is the day said unless a stage knows better; ``valid_to`` is null as long
    as nothing took the memory's place by the day of the question. Columns: said_on, happened_on, valid_from, valid_to,
    session, turns, text, score.
    """
    asked = tables["questions"]["asked_on"][0]
    places = found.select("session", "score", pl.col("turns").alias("turn"), "rank").explode("turn")
    named = tables["memories"].select("memory", "session", pl.col("turns").alias("turn")).explode("turn").join(
        places, on=["session", "turn"])
    size = pl.col("turns").list.len()
    known = with_text(named.group_by("memory").agg(pl.col("score").max(), pl.col("rank").min())
                      .join(tables["memories"], on="memory").filter(size == size.min().over("rank")),
                      tables["texts"], "value_id")
    return known.sort("said_on", "session", "memory", nulls_last=False).select(
        "said_on", "happened_on", pl.coalesce("valid_from", "said_on").alias("valid_from"),
        pl.when(as_of("valid_to", pl.lit(asked, pl.Datetime("us")))).then("valid_to").alias("valid_to"), "session",
        "turns", "text", "score").unique(["session", "turns", "text"], keep="first", maintain_order=True)
