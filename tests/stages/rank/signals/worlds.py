"""The small world of rankings with days, sources and classes, and signals run over it."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl

from memlab.pipeline.tables import SCHEMAS, Tables, empty, frame
from memlab.stages.rank.boost import Boost
from memlab.stages.rank.signals import Signal
from memlab.stages.rank.units import memory_units, session_units, turn_units
from memlab.store import Store
from tests.stages.rank.rankings import ranking, world

ASKED = datetime(2023, 6, 1, 9)
AGES = [31, 22, 0, 5]
"""Days before the question, a session each: three of corpus 0, one of corpus 1."""


def dated(table: pl.DataFrame | None = None, level: str = "turn", classes: dict[int, list[str]] | None = None,
          **memories: list) -> Tables:
    """The world with its sessions dated, a ranking of units of a level, and columns of memories given anew."""
    tables = world()
    said = pl.Series("said_on", [ASKED + timedelta(hours=3, days=-age) for age in AGES], SCHEMAS["sessions"]["said_on"])
    sessions = tables["sessions"].with_columns(said)
    own = tables["memories"].drop("said_on").join(sessions, on=["corpus", "session"], maintain_order="left").select(
        list(SCHEMAS["memories"])).with_columns(pl.lit("conversation").alias("source"))
    own = own.with_columns(*(pl.Series(name, values, SCHEMAS["memories"][name]) for name, values in memories.items()))
    units = {"turn": turn_units(tables["turns"]), "session": session_units(sessions, tables["turns"]),
             "memory": memory_units(own)}[level]
    asked = tables["questions"].with_columns(pl.lit(ASKED).alias("asked_on"))
    told = [(q, name) for q, names in (classes or {}).items() for name in names]
    return tables.updated({
        "sessions": sessions, "memories": own, "units": units, "questions": asked, "edges": empty("edges"),
        "classes": frame("classes", {"question": [q for q, _ in told], "class": [c for _, c in told]}),
        "ranking": ranking([.6, .5, .4, .3, .2, .1]) if table is None else table})


def values(signal: Signal, tables: Tables) -> list[float | None]:
    """What the signal says of the ranked units, in the order of the ranking."""
    told = signal.values(tables.only(Boost.reads))
    assert told.select("question", "unit").is_unique().all()
    assert told.schema == {"question": pl.Int32, "unit": pl.Int64, "value": pl.Float64}
    return tables["ranking"].join(told, on=["question", "unit"], how="left", maintain_order="left")["value"].to_list()


def boosted(tables: Tables, **settings) -> pl.DataFrame:
    """The ranking after a boost."""
    stage = Boost(**settings)
    return stage.run(tables.only(stage.reads), Store())["ranking"]


def order(tables: Tables, **settings) -> list[int]:
    """The units after a boost, best first."""
    return boosted(tables, **settings)["unit"].to_list()
