"""What the marks of the arms table compare: every arm with what, in one line."""

from __future__ import annotations

from typing import Any

OTHERS = 3
"""Arms of one comparator from which on they are told as all others."""


def against(comparison: dict[str, Any]) -> str:
    """Say what each arm is compared with; empty where nothing is compared.

    >>> rows = [{"arm": a, "comparator": b} for a, b in [("gap", "gap.twin"), ("k5", "k3"), ("k9", "k3"), ("k7", "k3")]]
    >>> against({"contrasts": rows[:1], "exploratory": rows})
    'gap with its twin, all others with k3'
    """
    pairs: dict[str, list[str]] = {}
    for row in [*comparison.get("contrasts", []), *comparison.get("exploratory", [])]:
        other = "its twin" if row["comparator"] == f"{row['arm']}.twin" else str(row["comparator"])
        if other not in pairs.setdefault(str(row["arm"]), []):
            pairs[str(row["arm"])].append(other)
    groups: dict[tuple[str, ...], list[str]] = {}
    for arm, others in pairs.items():
        groups.setdefault(tuple(others), []).append(arm)
    most = max(groups.values(), key=len, default=[])
    said = [(some, " and ".join(others)) for others, some in groups.items()]
    told = [f"{', '.join(some)} with {others}" for some, others in said if some is not most or len(some) < OTHERS]
    rest = [f"all{' others' if told else ''} with {others}" for some, others in said
            if some is most and len(some) >= OTHERS]
    return ", ".join([*told, *rest])
