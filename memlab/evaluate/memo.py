"""A memo for measures that depend on the order of a ranking alone: arms that differ in selection share them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from memlab.tables import Tables, frame_digest

T = TypeVar("T")

READS = ("units", "evidence", "gold", "questions", "turns", "ids")
"""Tables that such a measure may read besides the columns question, unit, rank and tokens of ``ranking``."""

SIZE = 8
"""Rankings whose measures are remembered; arms that share one run one after another."""


def by_order(measure: Callable[[Tables], T]) -> Callable[[Tables], T]:
    """Remember the result of a measure for each order; a result must not be changed in place."""
    results: OrderedDict[str, T] = OrderedDict()

    @wraps(measure)
    def remembered(tables: Tables) -> T:
        ranking = tables["ranking"]
        order = ranking.select(c for c in ("question", "unit", "rank", "tokens") if c in ranking.columns)
        key = f"{tables.digest(READS)} {frame_digest(order)}"
        if key not in results:
            results[key] = measure(tables.only(READS).updated({"ranking": ranking.with_columns(selected=False)}))
            if len(results) > SIZE:
                results.popitem(last=False)
        return results[key]

    return remembered
