"""Votes on results, and the signals of a boost that read a memory's own record of votes and accesses."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import date
from typing import Any

import polars as pl

from memlab.memory.database import Database
from memlab.memory.pruning import Accesses, renumber
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.stage import name_of, stage
from memlab.pipeline.tables import SESSION, Tables, as_of, frame_digest
from memlab.stages.rank.boost import Boost
from memlab.stages.rank.signals import PAIR, AccessCount, Feedback, Signal, share_of_useful
from memlab.support.errors import MemlabError

_VOTES: dict[str, Any] = {"vote": pl.Int64, "session": pl.Int32, "turn": pl.Int32, "useful": pl.Boolean, "on": pl.Date}


def results_of(given: Mapping[str, Any] | pl.DataFrame) -> list[tuple[Any, Any]]:
    """Return (session, turns) of a row of results, or of each row of a frame; raise MemlabError for anything else."""
    rows = given.to_dicts() if isinstance(given, pl.DataFrame) else [given]
    if not all(isinstance(row, Mapping) and {"session", "turns"} <= row.keys() for row in rows):
        raise MemlabError("expected a result, which has a session and turns", where="feedback",
                          fix="give a row of what search returns, found[0], or several, found[:3]")
    return [(row["session"], row["turns"]) for row in rows]


class Votes:
    """Votes by number, one row of the database for each turn that a vote is about."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, results: Iterable[tuple[int, Sequence[int]]], useful: bool, on: date) -> None:
        """Record a vote for each result, its session and turns, in one transaction."""
        ((first,),) = self._database.rows("SELECT coalesce(max(vote), -1) + 1 FROM votes")
        assert isinstance(first, int), "votes are numbers"
        new = [(vote, session, turn) for vote, (session, turns) in enumerate(results, first) for turn in turns]
        with self._database.transaction():
            self._database.run("INSERT OR REPLACE INTO votes VALUES (?, ?, ?, ?, ?)",
                               *((*place, int(useful), on.isoformat()) for place in new))

    def forget(self, forgotten: Mapping[int, Set[int]]) -> None:
        """Drop the votes on some turns, by session, within a transaction."""
        self._database.delete_turns("votes", forgotten)

    def frame(self) -> pl.DataFrame:
        """Return (vote, session, turn, useful, on)."""
        rows: list[tuple[Any, ...]] = self._database.rows("SELECT vote, session, turn, useful, day FROM votes")
        with self._database.reading():
            return pl.DataFrame([(*place, bool(useful), date.fromisoformat(day)) for *place, useful, day in rows],
                                _VOTES, orient="row")


@stage
class RecordedFeedback(Feedback):
    """``Feedback`` from a memory's votes: a vote counts for each unit with one of its turns."""

    votes: pl.DataFrame  # (vote, session, turn, useful, on), sessions numbered as in the tables

    def identity(self) -> dict[str, Any]:
        """Return the content of the record."""
        return {"is": name_of(type(self)), "name": self.name, "feedback": frame_digest(self.votes)}

    def values(self, tables: Tables) -> pl.DataFrame:
        """Return (question, unit, value)."""
        votes = _turns_of_units(tables).join(self.votes, on=["session", "turn"]).select(
            *PAIR, "vote", "on", pl.col("useful").cast(pl.Int64), (~pl.col("useful")).cast(pl.Int64).alias("useless"))
        return share_of_useful(tables, votes.unique([*PAIR, "vote"]))


@stage
class RecordedAccesses(AccessCount):
    """``AccessCount`` from a memory's counts. A turn that was returned after the day of the question does not count."""

    accesses: pl.DataFrame  # (session, turn, times, last), sessions numbered as in the tables

    def identity(self) -> dict[str, Any]:
        """Return the content of the record."""
        return {"is": name_of(type(self)), "name": self.name, "accesses": frame_digest(self.accesses)}

    def values(self, tables: Tables) -> pl.DataFrame:
        """Return (question, unit, value)."""
        dates = tables["questions"].select("question", "asked_on")
        times = (_turns_of_units(tables).join(self.accesses, on=["session", "turn"]).join(dates, on="question")
                 .filter(as_of("last")).group_by(PAIR).agg(pl.col("times").max()))
        return tables["ranking"].select(PAIR).join(times, on=PAIR, how="left", maintain_order="left").select(
            *PAIR, pl.col("times").fill_null(0).log1p().alias("value"))


def _turns_of_units(tables: Tables) -> pl.DataFrame:
    """Return (question, unit, session, turn) of the ranking."""
    units = tables["units"].select("unit", *SESSION, pl.col("turns").alias("turn"))
    return tables["ranking"].select(PAIR).join(units, on="unit").explode("turn")


def with_record(pipeline: Pipeline, votes: Votes, accesses: Accesses, places: pl.DataFrame) -> Pipeline:
    """Return the pipeline with the boosts' signals of feedback and accesses reading the record of a memory.

    places: (session, position), the number of each session, and that in the tables.
    """
    def with_its_record(signal: Signal) -> Signal:
        if isinstance(signal, Feedback):
            return RecordedFeedback(name=signal.name, votes=renumber(votes.frame(), places))
        if isinstance(signal, AccessCount):
            return RecordedAccesses(name=signal.name, accesses=renumber(accesses.frame(), places))
        return signal

    boosts = {slot: dataclasses.replace(stage, signals=tuple(with_its_record(signal) for signal in stage.signals))
              for slot, stage in pipeline.stages() if isinstance(stage, Boost)}
    return pipeline.replace(**boosts) if boosts else pipeline
