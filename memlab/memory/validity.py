"""Validity of turns on a day: until a newer version of their session replaces them, or they are deprecated."""

from __future__ import annotations

import threading
from datetime import date

import polars as pl

from memlab.memory.session_tables import arrange
from memlab.memory.sessions import turn_ends
from memlab.memory.working_set import WorkingSet
from memlab.pipeline.tables import PLACED, Tables
from memlab.store import Store


class Validity:
    """The ends of turns that are no longer valid, and tables without such turns. Safe for concurrent questions.

    Args:
        sessions: The working set of the memory, of which nothing is deprecated or restored later.
    """

    def __init__(self, sessions: WorkingSet) -> None:
        self._sessions = sessions
        self._lock = threading.Lock()
        # all tables, the turns that had ended, by session, and the tables without them
        self._latest: tuple[Tables, dict[int, frozenset[int]], Tables] | None = None

    def ends(self) -> pl.DataFrame:
        """Return (session, position, turn, end): of turns that are valid no longer, the first day, or ``ALWAYS``."""
        tables, places = self._sessions.tables()
        days = dict(zip(places["session"], tables["sessions"]["said_on"].dt.date()))
        rows = [(session, turn, day) for session, ends in turn_ends(self._sessions.ended.values(), days).items()
                for turn, day in ends.items()]
        ends = pl.DataFrame(rows, {"session": pl.Int32, "turn": pl.Int32, "end": pl.Date}, orient="row")
        return ends.join(places, on="session", how="left", maintain_order="left")

    def tables(self, day: date, store: Store) -> Tables:
        """Return the tables of what is valid on a day; sessions have the positions that they have among all.

        They are as if earlier versions and deprecated turns had been forgotten: the stages that look at
        one session run again, with the store of the question, where a part of a session is valid.
        """
        whole, places = self._sessions.tables()
        ended = self.ends().filter(pl.col("end") <= day).group_by("session").agg("turn")
        gone = {number: frozenset(turns) for number, turns in ended.iter_rows()}
        with self._lock:
            if self._latest is None or self._latest[0] is not whole or self._latest[1] != gone:
                left = {number: self._sessions.ended[number].without(turns) for number, turns in gone.items()}
                tables = arrange(self._sessions.shorten(left, store), places) if gone else whole
                tables.digest(PLACED)  # cached with the tables, for all questions
                self._latest = whole, gone, tables
            return self._latest[2]
