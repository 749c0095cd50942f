"""The manifests of a report's arms: what all arms share, what differs, and the commands that started them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memlab.harness.arm import Arm
from memlab.harness.results import ArmRun
from memlab.report.display_names import EMPTY_SLOT, slot_names, with_display_names
from memlab.stage import name_of
from memlab.text.display import EMPTY, one_line

ELSEWHERE = ("arm", "command", "notes", "reliability", "importances", "constant_k", "told", "looks_at_gold")
"""Parts of a manifest that the report shows in a section of their own."""

SLOTS = "pipeline."
"""Beginning of the names of a manifest's slots."""


def flat(value: Any, prefix: str = "") -> dict[str, str]:
    """Flatten a manifest to dotted names and short texts.

    >>> flat({"versions": {"polars": "1.2"}, "seeds": [1, 2]})
    {'versions.polars': '1.2', 'seeds': '1, 2'}
    """
    if isinstance(value, dict):
        return {k: v for name, inner in value.items()
                for k, v in flat(inner, f"{prefix}.{name}" if prefix else str(name)).items()}
    if isinstance(value, list | tuple) and any(isinstance(v, dict | list) for v in value):
        return {prefix: f"{len(value)} entries"}
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else _plain(value)
    return {prefix: text if len(text) <= 300 else text[:297] + "..."}


def _plain(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: EMPTY}[value]
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def transpose(tables: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Turn arm -> name -> value into name -> arm -> value; what an arm does not have is ``EMPTY``."""
    names = dict.fromkeys(name for table in tables.values() for name in table)
    return {name: {arm: table.get(name, EMPTY) for arm, table in tables.items()} for name in names}


def manifests(arms: Sequence[ArmRun]) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Split the manifests into what all arms share and what differs: name -> value, name -> arm -> value.

    A slot that is empty in all arms is left out.
    """
    rows = transpose({arm.name: _described(arm) for arm in arms})
    shared = {name: next(iter(row.values())) for name, row in rows.items() if len(set(row.values())) == 1}
    differing = {name: row for name, row in rows.items() if name not in shared}
    return {name: text for name, text in shared.items() if text != EMPTY_SLOT or not name.startswith(SLOTS)}, differing


def _described(arm: ArmRun) -> dict[str, str]:
    """Flatten the manifest of an arm; a technique stands under the name of its slot, by its display name."""
    parts = with_display_names({k: v for k, v in arm.manifest.items() if k not in ELSEWHERE})
    if isinstance(source := parts.get("source"), dict):  # of what all arms have in common; a note tells of the others
        parts["source"] = source.get(name_of(Arm))
    if isinstance(pipeline := parts.get("pipeline"), dict):
        pipeline.pop("is", None)  # the same class in all runs
        for slot, name in slot_names(arm).items():  # a manifest's models do not record which file describes them
            if isinstance(pipeline.get(slot), dict):
                pipeline[slot]["is"] = name
    return {name.removesuffix(".is"): text for name, text in flat(parts).items()}


def commands(arms: Sequence[ArmRun]) -> list[str]:
    """Return the distinct lines that started the arms, in the arms' order; those of jobs have none."""
    return list(dict.fromkeys(one_line(line) for arm in arms if (line := arm.manifest["command"])))
