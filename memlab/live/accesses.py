"""Access counts of a live memory: how often and when last each turn was returned. One line per question on disk."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path

import polars as pl

from memlab.runtime.files import atomic_write

FILE = "accesses.jsonl"
MOST = 10_000
"""If there are more lines, loading sums them to one per turn."""

_Turn = tuple[int, int]
_Count = tuple[int, str]


class Accesses:
    """Counts by session and turn. Lines are not synced: losing the last ones loses counts alone."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._counts: dict[_Turn, _Count] = {}
        lines = 0
        with suppress(FileNotFoundError):
            for line in self.path.read_bytes().splitlines():
                lines += 1
                with suppress(ValueError, KeyError, TypeError):  # a line that was cut off, or is damaged
                    row = json.loads(line)
                    self._count([(int(s), int(t)) for s, t in row["turns"]], str(row["on"]), int(row.get("times", 1)))
        if lines > MOST:
            self._rewrite()

    def add(self, results: pl.DataFrame, on: date) -> None:
        """Count the turns of a question's results (session, turns), each turn once."""
        turns = sorted(set(results.select("session", "turns").explode("turns").drop_nulls().iter_rows()))
        if turns:
            self._count(turns, on.isoformat(), 1)
            with self.path.open("a", encoding="ascii") as file:
                file.write(json.dumps({"on": on.isoformat(), "turns": turns}) + "\n")

    def forget(self, forgotten: Mapping[int, Iterable[int] | None]) -> None:
        """Drop the counts of some turns; None stands for all turns of a session."""
        self._counts = {(s, t): count for (s, t), count in self._counts.items()
                        if s not in forgotten or (turns := forgotten[s]) is not None and t not in set(turns)}
        self._rewrite()

    def frame(self) -> pl.DataFrame:
        """Return (session, turn, times, last): how often a turn was returned, and the day of the last question."""
        rows = [(s, t, times, date.fromisoformat(last)) for (s, t), (times, last) in sorted(self._counts.items())]
        return pl.DataFrame(rows, orient="row", schema={"session": pl.Int32, "turn": pl.Int32, "times": pl.Int64,
                                                        "last": pl.Date})

    def _count(self, turns: Iterable[_Turn], on: str, times: int) -> None:
        date.fromisoformat(on)
        for turn in turns:
            before, last = self._counts.get(turn, (0, on))
            self._counts[turn] = before + times, max(last, on)

    def _rewrite(self) -> None:
        atomic_write(self.path, "".join(json.dumps({"on": last, "times": times, "turns": [turn]}) + "\n"
                                        for turn, (times, last) in sorted(self._counts.items())))
