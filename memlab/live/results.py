"""Search results of a live memory: the ranking of one question as a table, and the history of a topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import polars as pl

from memlab.errors import MemlabError
from memlab.pipeline import Pipeline
from memlab.rank.units import signals_of
from memlab.read.prompt import HEADER, Value, render_units
from memlab.slots import AFTER_ANSWERS
from memlab.stage import Stage
from memlab.tables import GOLD, SESSION, Tables, as_of, with_text
from memlab.text.display import html_table, paragraphs
from memlab.text.transcript import render_turns

RESULT = {"rank": pl.Int32, "score": pl.Float64, "selected": pl.Boolean, "said_on": pl.Datetime("us"),
          "session": pl.Int32, "turns": pl.List(pl.Int32), "text": pl.String, "role": pl.String, "words": pl.String}
"""Columns of every result; further columns are the signals, one per lane, boost or reranker."""


def without_judges(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline without judges, for questions without labels.

    Raises MemlabError if a stage before the answer reads gold.
    """
    for slot, stage in pipeline.stages():
        gold = sorted(GOLD & set(stage.reads))
        if gold and slot not in AFTER_ANSWERS:
            raise MemlabError(f"{type(stage).__name__} reads {', '.join(gold)}, which a question of your own has not",
                              where=slot, fix="choose a technique there that needs no labels")
    return pipeline.without(*AFTER_ANSWERS)


def ranking_alone(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline up to the selection: without contexts and answers; token costs only if it reads them."""
    slots = [slot for slot, _ in pipeline.between("select", None)]
    return pipeline.without(*slots, *(() if reads_tokens(pipeline.select) else ("measure",)))


def reads_tokens(select: Stage) -> bool:
    """Return whether a selection may read token costs: unless the class with its ``run`` says ``by_tokens = False``.

    A class that is made of it may have a ``run`` of its own, which has to say so too (``memlab.rank.select``).
    """
    owner = next(cls for cls in type(select).__mro__ if "run" in vars(cls))
    return bool(vars(owner).get("by_tokens", True))


def results(tables: Tables, pipeline: Pipeline, k: int | None = None) -> pl.DataFrame:
    """Return the first ``k`` ranks of the one question in ``tables``, or, for None, the selected ones.

    Columns: those of ``RESULT``, then the signals. ``text`` is the text that a reader would be shown, below its date;
    ``words`` are the words alone, without the date, and of a turn without its speaker. ``role`` is that of all turns,
    or null.
    """
    ranking = tables["ranking"].filter(pl.col("selected") if k is None else pl.col("rank") <= k).sort("rank")
    units = tables["units"].join(ranking.select("unit"), on="unit", how="semi")
    value: Value = getattr(pipeline.measure, "value", "unit")
    day = pl.col("said_on").dt.strftime(HEADER).fill_null("")
    return (
        ranking.join(units.select("unit", *SESSION, "turns"), on="unit", how="left", maintain_order="left")
        .join(tables["sessions"], on=SESSION, how="left", maintain_order="left")
        .join(render_units(units, tables, value), on="unit", how="left", maintain_order="left")
        .join(_said_by(units, tables), on="unit", how="left", maintain_order="left")
        .with_columns(pl.col("text").str.strip_prefix(day).alias("words"))
        .with_columns(pl.when(pl.col("words") == pl.col("display_text")).then("said").otherwise("words").alias("words"))
        .select(*RESULT, *signals_of(ranking))
    )


def _said_by(units: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Return (unit, role, said, display_text): the one role of its turns, or null; and of one turn alone, its texts."""
    turns = units.select("unit", *SESSION, pl.col("turns").alias("turn")).explode("turn")
    place = [*SESSION, "turn"]
    lines = render_turns(tables["turns"].join(turns, on=place, how="semi"), tables["texts"])
    one, role = pl.len() == 1, pl.col("role")
    return turns.join(lines, on=place).group_by("unit").agg(
        pl.when(role.n_unique() == 1).then(role.first()).alias("role"),
        pl.when(one).then(pl.col("text").first()).alias("said"),
        pl.when(one).then(pl.col("display_text").first()).alias("display_text"))


@dataclass(frozen=True)
class Answer:
    """A reader's answer, and the results that it read."""

    text: str
    results: pl.DataFrame


@dataclass(frozen=True, repr=False)
class SearchResult:
    """All results of one question.

    context: the texts that the reader is shown, in its order, before they are cut to its window. graph: the block about
    the people and things in the question, if there is one. answer: the reader's, if there is one. names: those of the
    sessions that have one, by number.
    """

    question: str
    asked_on: datetime | None
    results: pl.DataFrame
    context: list[str]
    graph: str | None
    answer: str | None
    names: Mapping[int, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        answer = "" if self.answer is None else f", answer {self.answer!r:.200}"
        return f"<SearchResult of {self.question!r:.200}: {self.results.height} results{answer}>"

    def _repr_html_(self) -> str:
        rows = self.results.select("rank", pl.col("score").round(3), "selected", "said_on", "session", "text")
        return html_table(rows.columns, rows.iter_rows(), self.question) + paragraphs(
            [] if self.answer is None else [f"Answer: {self.answer}"])

    @classmethod
    def of(cls, tables: Tables, results: pl.DataFrame, names: Mapping[int, str] | None = None) -> SearchResult:
        """Read the tables of the one question."""
        questions, answers, context = (with_text(tables[name], tables["texts"])
                                       for name in ("questions", "answers", "context"))
        (question,) = questions.iter_rows(named=True)
        answer = answers.filter(pl.col("sample") == 0)["text"].to_list()
        context = context.sort("position")
        blocks = context.filter(pl.col("unit").is_null())["text"].to_list()
        items = context.filter(pl.col("unit").is_not_null())["text"].to_list()
        return cls(question["text"], question["asked_on"], results, items, "\n\n".join(blocks) or None,
                   answer[0] if answer else None, names or {})


def history(tables: Tables, results: pl.DataFrame) -> pl.DataFrame:
    """Return the memories behind some results in the order of time, with the span in which each was valid.

    Sessions are numbered in the order of time: where clocks go back, the wall clock would not order them.

    Of several memories of a result's turns (a turn, its round, its session) those with the fewest turns count: facts
    and turns before sessions. ``valid_from`` is the day said unless a stage set it; ``valid_to`` is null if no memory
    had replaced it by the day of the question. Columns: said_on, happened_on, valid_from, valid_to, session, turns,
    text, score.
    """
    day = pl.lit(tables["questions"]["asked_on"][0], pl.Datetime("us"))
    turns = results.select("session", "score", pl.col("turns").alias("turn"), "rank").explode("turn")
    scored = (
        tables["memories"].select("memory", "session", pl.col("turns").alias("turn")).explode("turn")
        .join(turns, on=["session", "turn"]).group_by("memory").agg(pl.col("score").max(), pl.col("rank").min())
    )
    size = pl.col("turns").list.len()
    smallest = scored.join(tables["memories"], on="memory").filter(size == size.min().over("rank"))
    return with_text(smallest, tables["texts"], "value_id").sort("session", "memory").select(
        "said_on", "happened_on", pl.coalesce("valid_from", "said_on").alias("valid_from"),
        pl.when(as_of("valid_to", day)).then("valid_to").alias("valid_to"), "session", "turns", "text", "score",
    ).unique(["session", "turns", "text"], keep="first", maintain_order=True)
