"""Access counts of a live memory: how often and when last each turn was returned."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date
from typing import Any

import polars as pl

from memlab.errors import MemlabError
from memlab.live.database import Database

_ADD = ("INSERT INTO accesses VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET times = times + excluded.times, "
        "last = max(last, excluded.last)")
"""Adds (session, turn, times, day) to the counts."""


class Accesses:
    """Counts by session and turn, in memory and in the database.

    Threads may count side by side. A question is never stopped by its counts: those that cannot be written are counts
    of this process alone, with a warning.
    """

    def __init__(self, database: Database) -> None:
        self._database, self._warned = database, database.read_only
        self._lock = threading.Lock()
        self._counts: dict[tuple[int, int], tuple[int, date]] = {}
        rows: list[tuple[Any, ...]] = database.rows("SELECT session, turn, times, last FROM accesses")
        for session, turn, times, last in rows:
            with suppress(ValueError, TypeError):  # a damaged day
                if all(type(number) is int and 0 <= number < 2**31 for number in (session, turn, times)):
                    self._counts[session, turn] = times, date.fromisoformat(last)

    def add(self, results: pl.DataFrame, on: date) -> None:
        """Count the turns of a question's results (session, turns), each turn once."""
        turns = sorted(set(results.select("session", "turns").explode("turns").drop_nulls().iter_rows()))
        with self._lock:
            for turn in turns:
                times, last = self._counts.get(turn, (0, on))
                self._counts[turn] = times + 1, max(last, on)
        if turns and not self._database.read_only:
            try:
                with self._database.transaction(durable=False):
                    self._database.run(_ADD, *((*turn, 1, on.isoformat()) for turn in turns))
            except MemlabError as error:
                if not self._warned:
                    warnings.warn(f"access counts are not saved: {error}", stacklevel=2)
                self._warned = True

    def forget(self, forgotten: Mapping[int, Iterable[int] | None]) -> None:
        """Drop the counts of some turns, within a transaction; None stands for all turns of a session."""
        gone = [(s, t) for s, t in self._counts
                if s in forgotten and ((turns := forgotten[s]) is None or t in set(turns))]
        for turn in gone:
            del self._counts[turn]
        self._database.run("DELETE FROM accesses WHERE session = ? AND turn = ?", *gone)
        self._database.run("DELETE FROM accesses WHERE session = ?", *((s,) for s, t in forgotten.items() if t is None))

    def frame(self) -> pl.DataFrame:
        """Return (session, turn, times, last): how often a turn was returned, and the day of the last question."""
        with self._lock:
            rows = [(s, t, times, last) for (s, t), (times, last) in sorted(self._counts.items())]
        return pl.DataFrame(rows, orient="row", schema={"session": pl.Int32, "turn": pl.Int32, "times": pl.Int64,
                                                        "last": pl.Date})
