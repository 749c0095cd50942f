"""The protocol of signals: one number for each ranked unit."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import polars as pl

from memlab.tables import Tables


@runtime_checkable
class Signal(Protocol):
    """A column of the ranking: how recent, how important, how well related a unit is.

    Signals are frozen ``@stage`` classes, so that their fields are their configuration. They may use what was known
    on the day of the question, and nothing of gold.
    """

    @property
    def name(self) -> str:
        """Name of the column."""
        ...

    def values(self, tables: Tables) -> pl.DataFrame:
        """Return (question Int32, unit Int64, value Float64), each pair once, for units of ``tables["ranking"]``.

        A pair that is left out, or whose value is null, has no value. ``tables`` are those that ``Boost`` reads; its
        ranking holds no more units than are rescored.
        """
        ...
