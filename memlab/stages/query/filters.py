"""Filters of an experiment: what its questions may search, as the filter of a live memory limits its questions.

They run before every other stage, so that an arm with a filter finds what it would find in data of nothing but the
fitting sessions and turns. Evidence that does not fit counts as missed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl
from pydantic import model_validator

from memlab.data.numbering import renumber
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import PLACED, SESSION, Tables, empty
from memlab.stages.query.where import Where, fits, narrow
from memlab.store import Store
from memlab.support.clock import Clock
from memlab.support.errors import MemlabError

MOST = 1000
"""Most filters of the questions of one corpus: its number times this is the first number of the corpora they make."""


def read_filter(fields: object, place: str) -> Where:
    """Return a filter of sessions by fields, metadata, role and date; raise MemlabError for any other."""
    if not isinstance(fields, dict) or not fields:
        raise MemlabError("a filter has at least one condition", where=place, fix='write {user: ann} or {role: user}')
    if "name" in fields:
        raise MemlabError("sessions of an experiment have no names, which could tell evidence", where=place,
                          fix="filter by user, agent, room, source, kind, metadata.KEY, role, after or before")
    return Where.read(fields, Clock())


@stage
class Filter:
    """One filter for all questions: sessions by field, metadata or date, and turns by role.

    >>> Filter(only={"role": "user"}).only
    {'role': 'user'}
    """

    reads: ClassVar = (*PLACED, "fields")
    writes: ClassVar = (*PLACED, "fields")

    only: dict[str, Any]  # such as {user: ann, role: user, after: 2023-05-01, metadata.page: [3, 4]}

    @model_validator(mode="after")
    def _is_a_filter(self) -> Filter:
        read_filter(self.only, "query/where, only")
        return self

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return what fits; raise MemlabError where the filter names fields and no session has any."""
        where = read_filter(self.only, "query/where, only")
        if where.values and "fields" not in tables:
            raise MemlabError(f"no session has fields, and the filter asks for {', '.join(where.values)}",
                              where="query/where", fix="give the lines of sessions.jsonl user, agent, room, source, "
                                                       "kind or metadata; in a Memory use where=... of its methods")
        tables = _add_missing(tables)
        return _select(tables, where, _fields_of(tables["fields"])).updated({"fields": empty("fields")})


@stage
class OwnFilter:
    """The filter that a question of the data brings along (``where`` in questions.jsonl); one without it searches all.

    The questions of a corpus that have the same filter get a corpus of their own, of what fits.
    """

    reads: ClassVar = (*PLACED, "fields", "questions")
    writes: ClassVar = (*PLACED, "fields", "questions")

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return what fits, once for each filter; raise MemlabError if no question has a filter."""
        if "fields" not in tables:
            raise MemlabError("no question has a filter of its own", where="query/where",
                              fix='write "where": {"user": "ann"} into lines of questions.jsonl, or choose '
                                  "query/where=filter")
        tables = _add_missing(tables)
        own = tables["fields"].filter(pl.col("question").is_not_null()).select("question", "content")
        asked = tables["questions"].join(own, on="question", how="left", maintain_order="left")
        number = pl.col("content").rank("dense").over("corpus").fill_null(0).cast(pl.Int32)
        asked = asked.with_columns((pl.col("corpus") * MOST + number).alias("view"))
        known = _fields_of(tables["fields"])
        parts = []
        for corpus, view, content in asked.select("corpus", "view", "content").unique().sort("view").iter_rows():
            if view - corpus * MOST >= MOST:
                raise MemlabError(f"the questions of one corpus have more than {MOST - 1} filters", where="query/where")
            found = tables.updated({name: tables[name].filter(pl.col("corpus") == corpus) for name in PLACED})
            if content is not None:
                found = _select(found, read_filter(json.loads(content), "questions.jsonl, where"), known)
            parts.append({name: found[name].with_columns(pl.lit(view, pl.Int32).alias("corpus")) for name in PLACED})
        questions = asked.with_columns(pl.col("view").alias("corpus")).select(tables["questions"].columns)
        return Tables(questions=questions, fields=empty("fields"),
                      **{name: pl.concat([part[name] for part in parts]) for name in PLACED})


def _add_missing(tables: Tables) -> Tables:
    """Return the tables with those that are made later, or that the data does not have, without rows."""
    return tables.updated({name: empty(name) for name in (*PLACED, "fields") if name not in tables})


def _fields_of(fields: pl.DataFrame) -> Mapping[tuple[int, int], Any]:
    """Return (corpus, session) -> its fields and metadata."""
    rows = fields.filter(pl.col("session").is_not_null()).select(*SESSION, "content")
    return {(corpus, session): json.loads(content) for corpus, session, content in rows.iter_rows()}


def _select(tables: Tables, where: Where, known: Mapping[tuple[int, int], Any]) -> Tables:
    """Return the tables of the sessions and turns that fit."""
    fields = [known.get(place, {}) for place in tables["sessions"].select(SESSION).iter_rows()]
    return narrow(tables, fits(fields, where), where).only(PLACED)


def undo(tables: Tables, data: Tables) -> Tables:
    """Return the tables of a run with all sessions, turns and questions of its data, for its evaluation."""
    views = tables["questions"].select("question", "corpus").join(
        data["questions"].select("question", pl.col("corpus").alias("number")), on="question").select(
        "corpus", "number").unique()
    moved = {name: renumber(table, "corpus", views) for name, table in tables.items() if name not in data}
    return tables.updated({**moved, **{name: data[name] for name in ("sessions", "turns", "questions")}})
