"""What the order of a ranking alone decides is measured once for all arms that share it and differ in selection."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from memlab.tables import Tables, frame_digest

T = TypeVar("T")

BESIDE = ("units", "evidence", "gold", "questions", "turns")
"""Tables that such a measure may read beside ``ranking``, of which it may read question, unit, rank and tokens."""

KEPT = 8
"""Rankings whose measures are remembered; the arms of a sweep follow one another."""


def by_order(measure: Callable[[Tables], T]) -> Callable[[Tables], T]:
    """Remember what a measure made of the same order; its result must not be changed in place."""
    known: OrderedDict[str, T] = OrderedDict()

    @wraps(measure)
    def remembered(tables: Tables) -> T:
        ranking = tables["ranking"]
        order = ranking.select(c for c in ("question", "unit", "rank", "tokens") if c in ranking.columns)
        key = f"{tables.digest(BESIDE)} {frame_digest(order)}"
        if key not in known:
            shown = tables.only(BESIDE).updated({"ranking": ranking.with_columns(selected=False)})
            known[key] = measure(shown)
            if len(known) > KEPT:
                known.popitem(last=False)
        return known[key]

    return remembered
