"""Filters of sessions and turns by name, field, metadata, role and date, which limit what is searched.

A question with a filter is put to the tables of the sessions that fit, as if the memory held nothing else: document
frequencies, relations and ties are those of such a memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.data.fields import FIELDS, ROLES, Plain, brief, is_plain, values_of
from memlab.models.protocols import Ints
from memlab.pipeline.tables import PLACED, SESSION, Tables
from memlab.support.clock import Clock
from memlab.support.errors import MemlabError, did_you_mean
from memlab.support.text.display import replace_surrogates

METADATA = "metadata."
"""What a key of metadata begins with."""

KEYS = ("name", *FIELDS, "role", "after", "before")


@dataclass(frozen=True)
class Where:
    """What sessions and turns must have.

    values: by field, or metadata and its key, the values of which one must be there; None stands for a field that is
    not there. roles: of turns; None for all. after: the first day. before: the day behind the last.
    """

    values: Mapping[str, tuple[Plain, ...]]
    roles: tuple[str, ...] | None = None
    after: date | None = None
    before: date | None = None

    @classmethod
    def read_any(cls, where: Mapping[str, Any] | None, clock: Clock) -> Where | None:
        """Return a filter as users write it, or None for one without conditions; raise as ``read``."""
        read = None if where is None else cls.read(where, clock)
        return read if where else None

    @classmethod
    def read(cls, where: Mapping[str, Any], clock: Clock) -> Where:
        """Return a filter as users write it; raise MemlabError for one that cannot be met.

        >>> Where.read({"user": "ann", "metadata.page": [3, 4], "after": "2023-05-20"}, Clock()).values
        {'user': ('ann',), 'metadata.page': (3, 4)}
        """
        values: dict[str, tuple[Plain, ...]] = {}
        days: dict[str, date] = {}
        for key, value in where.items():
            place = f"where, {key!s:.40}"
            if not isinstance(key, str) or not (key in KEYS or key.startswith(METADATA) and key != METADATA):
                known = (*KEYS, f"{METADATA}KEY")
                raise MemlabError(f"there is no field {key!r:.40}", where="where", fix=did_you_mean(str(key), known))
            if key in ("after", "before"):
                days[key] = clock.local(value, place).date()
                continue
            plain = tuple(value) if isinstance(value, list | tuple) else (value,)
            values[replace_surrogates(key)] = tuple(
                replace_surrogates(one) if isinstance(one, str) else one for one in plain)  # as a session has them
            for one in plain:
                if not is_plain(one):
                    raise MemlabError(f"{brief(one)} is no plain value", where=place,
                                      fix="give text, a number, true, false or None, or a list of them")
        roles = values.pop("role", None)
        for role in roles or ():
            if role not in ROLES:
                raise MemlabError(f"there is no role {role!r:.40}", where="where, role",
                                  fix=did_you_mean(str(role), ROLES))
        return cls(values, None if roles is None else tuple(str(role) for role in roles), **days)

    def within(self) -> pl.Expr:
        """Return whether a session was said on one of the days; one without a date fits no limit."""
        day = pl.col("said_on").dt.date()
        after = pl.lit(True) if self.after is None else day >= self.after
        return (after & (pl.lit(True) if self.before is None else day < self.before)).fill_null(False)

    def of_role(self) -> pl.Expr:
        """Return whether a turn has one of the roles."""
        return pl.lit(True) if self.roles is None else pl.col("role").is_in(list(self.roles))


def fits(fields: Sequence[Mapping[str, Any]], where: Where) -> NDArray[np.bool_]:
    """Return which sessions have one of the values of each field of a filter, (n,); True is not 1.

    fields: of each session its name, its fields and ``metadata``, as far as it has them.
    """
    wanted = {key: {(isinstance(value, bool), value) for value in values} for key, values in where.values.items()}
    return np.array([all(any((isinstance(one, bool), one) in values for one in values_of(own, key))
                         for key, values in wanted.items()) for own in fields], bool)


def narrow(tables: Tables, values: NDArray[np.bool_], where: Where) -> Tables:
    """Return the tables of what fits: its sessions, the turns of the roles, and the memories of nothing but these.

    Memories are numbered anew.

    values: (n,) whether each row of ``sessions`` has one of the filter's values of each field.
    """
    width = int(tables["sessions"]["session"].max() or 0) + 1  # type: ignore[arg-type]
    places = {name: _ints(tables[name], "corpus") * width + _ints(tables[name], "session") for name in PLACED}
    fits = values & tables["sessions"].select(where.within()).to_series().to_numpy()
    of_role = tables["turns"].select(where.of_role()).to_series().to_numpy()
    if where.roles is not None:
        fits &= np.isin(places["sessions"], places["turns"][of_role])
    left = {name: np.isin(place, places["sessions"][fits]) for name, place in places.items()}
    if where.roles is not None:
        left["turns"] &= of_role
        place = [*SESSION, "turns"]
        other = tables["turns"].filter(~where.of_role()).select(*SESSION, pl.col("turn").alias("turns"))
        memories = tables["memories"].select(*place).with_row_index("row").filter(pl.Series(left["memories"]))
        left["memories"][memories.explode("turns").join(other, on=place, how="semi")["row"].to_numpy()] = False
    numbered = tables["memories"].with_columns(pl.Series("memory", np.cumsum(left["memories"]) - 1))
    return tables.updated({name: (numbered if name == "memories" else tables[name]).filter(pl.Series(fit))
                           for name, fit in left.items() if not fit.all()})


def _ints(table: pl.DataFrame, column: str) -> Ints:
    return table[column].to_numpy().astype(np.int64)
