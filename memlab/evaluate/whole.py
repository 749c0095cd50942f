"""Budgets that hold a whole memory, so that systems have nothing to choose, and smaller budgets to try."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

SHARE = 0.25
"""Share of a memory that is advised as a budget: three quarters are left out, so that systems have to choose, and the
few turns that answer a question still fit."""

LIMITS = {"tokens": "tokens", "k": "turns"}
"""Setting of a selection -> the size of a memory that it limits. A unit holds a turn or more, so K units are K turns or
more."""


def budget(pipelines: Iterable[Mapping[str, Any]]) -> int | None:
    """Return the limit of tokens that these pipelines' selections or packs all declare; None without one in common.

    >>> budget([{"select": {"tokens": 500}}, {"select": {"k": 10}, "pack": {"max_tokens": 500}}])
    500
    """
    limits = {next((one[name] for slot, name in (("select", "tokens"), ("pack", "max_tokens"))
                    if isinstance(one := pipeline.get(slot), Mapping) and type(one.get(name)) is int), None)
              for pipeline in pipelines}
    return limits.pop() if len(limits) == 1 else None


class Whole(TypedDict):
    """A memory that fits: its ``size`` in ``unit``, the ``limit`` that holds it, and the setting and value to try."""

    size: float
    unit: str
    limit: int
    setting: str
    advised: int


def whole(selections: Sequence[Any], memory: Mapping[str, Any]) -> Whole | None:
    """Return how the memory fits whole into the limits of most selections; None if it does not, or is not known.

    ``selections`` are the specifications of the compared arms' selections, ``memory`` has the tokens and turns of a
    memory as ``memlab.experiment.harness.arm.haystack`` gives them.

    >>> whole([{"is": "memlab.Budget", "tokens": 1000}], {"tokens": 536.0, "turns": 20.0})
    {'size': 536.0, 'unit': 'tokens', 'limit': 1000, 'setting': 'rank.select.tokens', 'advised': 130}
    """
    for setting, unit in LIMITS.items():
        size = memory.get(unit)
        limits = [one[setting] for one in selections
                  if isinstance(one, Mapping) and type(one.get(setting)) is int]
        if not isinstance(size, int | float) or not limits or size <= 0:
            continue
        holding = [limit for limit in limits if limit >= size]
        if 2 * len(holding) > len(selections):
            return {"size": float(size), "unit": unit, "limit": min(holding), "setting": f"rank.select.{setting}",
                    "advised": max(1, round(float(f"{SHARE * size:.2g}")))}
    return None


def fits(found: Whole) -> str:
    """Return one sentence: that everything fits, and what to set.

    >>> fits({"size": 536.0, "unit": "tokens", "limit": 1000, "setting": "rank.select.tokens", "advised": 130})
    'everything fits; set rank.select.tokens=130: a memory of 536 tokens is shown whole within 1,000, and systems have \
to choose within a quarter of it'
    """
    return (f"everything fits; set {found['setting']}={found['advised']}: a memory of {found['size']:,.0f} "
            f"{found['unit']} is shown whole within {found['limit']:,}, and systems have to choose within a quarter of "
            "it")
