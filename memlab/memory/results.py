"""Search results of a live memory: the ranking of one question as a table, and the history of a topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from memlab.memory.sessions import ALWAYS
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.stage import Stage
from memlab.pipeline.tables import SESSION, Tables, as_of, with_text
from memlab.stages.rank.units import signals_of
from memlab.stages.read.prompt import Value, unit_bodies

RESULT: Mapping[str, pl.DataType | type[pl.DataType]] = {
    "rank": pl.Int32, "score": pl.Float64, "selected": pl.Boolean, "date": pl.Datetime("us"), "role": pl.String,
    "speaker": pl.String, "text": pl.String, "reply": pl.String, "session": pl.Int32, "name": pl.String,
    "turns": pl.List(pl.Int32),
    "chunk": pl.Struct({"index": pl.Int32, "total": pl.Int32, "offset": pl.Int64, "page": pl.Int32})}
"""Columns of every result; further columns are the signals, one per lane, boost or reranker.

``text`` is what was said, without date and speaker, or a memory that was made of it; ``speaker`` says who, by name or
role, and is null where the text itself names the speakers of several turns. ``role`` is that of all turns, or null.
``reply`` is what somebody else says next, with the name, where a single turn ends in a question mark, or null.
``session``, ``name`` (of the session) and ``turns`` are the place. ``chunk`` is where in a document it begins; it is
null but in a live memory (``WorkingSet.with_chunks``).
"""

MAX_RANKS = 20
"""Number of ranks that a question of the terminal returns."""


def ranking_alone(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline up to the selection: without contexts and answers; token costs only if it reads them."""
    slots = [slot for slot, _ in pipeline.between("select", None)]
    return pipeline.without(*slots, *(() if reads_tokens(pipeline.select) else ("measure",)))


def reads_tokens(select: Stage) -> bool:
    """Return whether a selection may read token costs: unless the class with its ``run`` says ``by_tokens = False``.

    A class that is made of it may have a ``run`` of its own, which has to say so too (``memlab.stages.rank.select``).
    """
    owner = next(cls for cls in type(select).__mro__ if "run" in vars(cls))
    return bool(vars(owner).get("by_tokens", True))


def ranking_rows(tables: Tables, k: int | None = None) -> pl.DataFrame:
    """Return the rows of the ranking up to rank ``k``, or, for None, the selected ones, with their places.

    None, whatever ``k`` is, where the selection shows nothing (the gate of rank/select=marginal).
    """
    shown = pl.col("selected") if k is None else (pl.col("rank") <= k) & pl.col("selected").any()
    ranking = tables["ranking"].filter(shown).sort("rank")
    units = tables["units"].join(ranking.select("unit"), on="unit", how="semi")
    return ranking.join(units.select("unit", *SESSION, "turns", "level"), on="unit", how="left", maintain_order="left")


def results(tables: Tables, pipeline: Pipeline, k: int | None = None,
            name_of: Callable[[int], str | None] = lambda _: None) -> pl.DataFrame:
    """Return the first ``k`` ranks of the one question in ``tables``, or, for None, the selected ones.

    Columns: the columns of ``RESULT``, then the signals. ``name_of`` returns the name of a session.
    """
    rows = ranking_rows(tables, k)
    value: Value = getattr(pipeline.measure, "value", "unit")
    names = pl.Series("name", [name_of(session) for session in rows["session"]], pl.String)
    prefix = pl.format("{}: ", "speaker")
    single = pl.lit(value in ("unit", "turn")) & (pl.col("turns").list.len() == 1)
    of_one, words = single & pl.col("body").str.starts_with(prefix), pl.col("body").str.strip_prefix(prefix)
    return (
        rows.join(unit_bodies(rows.select("unit", *SESSION, "turns", "level"), tables, value).select("unit", "body"),
                  on="unit", how="left", maintain_order="left")
        .join(_speakers(rows, tables["turns"]), on="unit", how="left", maintain_order="left")
        .join(_replies(rows, tables), on="unit", how="left", maintain_order="left")
        .join(tables["sessions"].rename({"said_on": "date"}), on=SESSION, how="left", maintain_order="left")
        .with_columns(names, pl.when(of_one).then(words).otherwise("body").alias("text"),
                      pl.when(of_one).then("speaker").alias("speaker"),
                      pl.lit(None, RESULT["chunk"]).alias("chunk"))
        .select(*RESULT, *signals_of(tables["ranking"]))
    )


def _speakers(units: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Return (unit, role, speaker): the one role of its turns, or null, and the name or role of the first speaker."""
    place = [*SESSION, "turn"]
    members = units.select("unit", *SESSION, pl.col("turns").alias("turn")).explode("turn")
    role = pl.col("role")
    return members.join(turns, on=place).sort("unit", "turn").group_by("unit").agg(
        pl.when(role.n_unique() == 1).then(role.first()).alias("role"),
        pl.col("speaker").fill_null(role).first().alias("speaker"))


def _replies(units: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Return (unit, reply) of the single turns that ask: the next turn of the session, if somebody else says it."""
    said = with_text(tables["turns"].join(units, on=SESSION, how="semi"), tables["texts"]).sort(*SESSION, "turn")
    who = pl.coalesce("speaker", "role")
    replies = said.with_columns(pl.format("{}: {}", who, "text").shift(-1).over(SESSION).alias("reply")).filter(
        pl.col("text").str.contains(r"[?？؟]\s*$"), who != who.shift(-1).over(SESSION))
    asking = units.filter(pl.col("turns").list.len() == 1).with_columns(pl.col("turns").list.first().alias("turn"))
    return asking.join(replies, on=[*SESSION, "turn"]).select("unit", "reply")


@dataclass(frozen=True, repr=False)
class SearchResult:
    """All results of one question.

    context: the texts that the reader is shown, in its order, before they are cut to its window. graph: the block about
    the people and things in the question, if there is one. answer: the reader's, if there is one.
    """

    question: str
    asked_on: datetime | None
    results: pl.DataFrame
    context: list[str]
    graph: str | None
    answer: str | None

    def __repr__(self) -> str:
        answer = "" if self.answer is None else f", answer {self.answer!r:.200}"
        return f"<SearchResult of {self.question!r:.200}: {self.results.height} results{answer}>"

    @classmethod
    def of(cls, tables: Tables, results: pl.DataFrame) -> SearchResult:
        """Read the tables of the one question."""
        questions, answers, context = (with_text(tables[name], tables["texts"])
                                       for name in ("questions", "answers", "context"))
        (question,) = questions.iter_rows(named=True)
        answer = answers.filter(pl.col("sample") == 0)["text"].to_list()
        context = context.sort("position")
        blocks = context.filter(pl.col("unit").is_null())["text"].to_list()
        items = context.filter(pl.col("unit").is_not_null())["text"].to_list()
        return cls(question["text"], question["asked_on"], results, items, "\n\n".join(blocks) or None,
                   answer[0] if answer else None)


def history(tables: Tables, ends: pl.DataFrame, k: int | None = None) -> pl.DataFrame:
    """Return the memories behind the ranks (as ``ranked``) in the order of time, with the span in which each was valid.

    Sessions are numbered in the order of time: where clocks go back, the wall clock would not order them.

    Of several memories of a result's turns (a turn, its round, its session) those with the fewest turns count: facts
    and turns before sessions. ``valid_from`` is the day said unless a stage set it. ``valid_to`` is the first day on
    which a later memory or a newer version had replaced it, or on which it was deprecated, and ``valid`` is false; both
    count as of the day of the question. What was never valid ends on the day on which it began. Columns: said_on,
    happened_on, valid_from, valid_to, valid, session, turns, text, score.

    ends: (position, turn, end), the first days without a turn, sessions numbered as in the tables.
    """
    day = pl.lit(tables["questions"]["asked_on"][0], pl.Datetime("us"))
    turns = ranking_rows(tables, k).select("session", "score", pl.col("turns").alias("turn"), "rank").explode("turn")
    scored = (
        tables["memories"].select("memory", "session", pl.col("turns").alias("turn")).explode("turn")
        .join(turns, on=["session", "turn"]).group_by("memory").agg(pl.col("score").max(), pl.col("rank").min())
    )
    size = pl.col("turns").list.len()
    smallest = scored.join(tables["memories"], on="memory").filter(size == size.min().over("rank"))
    ended = smallest.select("memory", "session", pl.col("turns").alias("turn")).explode("turn").join(
        ends.filter(as_of("end", day)).select("turn", "end", session="position"), on=["session", "turn"],
    ).group_by("memory").agg(pl.col("end").min())
    start, replaced = pl.coalesce("valid_from", "said_on"), pl.when(as_of("valid_to", day)).then("valid_to")
    end = pl.when(pl.col("end").is_not_null()).then(pl.max_horizontal(
        start, pl.when(pl.col("end") > ALWAYS).then(pl.col("end").cast(pl.Datetime("us")))))
    return with_text(smallest.join(ended, on="memory", how="left"), tables["texts"], "value_id").sort(
        "session", "memory").select(
        "said_on", "happened_on", start.alias("valid_from"), pl.min_horizontal(replaced, end).alias("valid_to"),
        (replaced.is_null() & pl.col("end").is_null()).alias("valid"), "session", "turns", "text", "score",
    ).unique(["session", "turns", "text"], keep="first", maintain_order=True)
