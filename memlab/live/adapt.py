"""A pipeline fitted to a young memory: what names a kind of memory of which there is none yet is left out.

An experiment's data hold memories of every kind that its configuration names, and a name that fits none is a fault.
Nobody has mistyped anything where a user's first session happens to hold no turn of the user.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import polars as pl

from memlab.pipeline import SLOTS, Pipeline
from memlab.stage import Nothing
from memlab.tables import Tables, as_of

NAMING = ("weights", "floors", "factors")


def adapt_to_data(pipeline: Pipeline, tables: Tables) -> Pipeline:
    """Return the pipeline without searches for, and weights of, kinds that the one question can see none of."""
    asked = tables["questions"]["asked_on"][0]
    seen = tables["memories"].filter(as_of(asked=pl.lit(asked, pl.Datetime("us"))))
    here = set(seen["kind"].unique())
    if not here:
        return pipeline
    changed: dict[str, Any] = {}
    for slot in SLOTS:
        if slot.phase != "search":
            continue
        stage = getattr(pipeline, slot.name)
        kinds = getattr(stage, "kinds", None)
        left = tuple(k for k in kinds or () if k in here)
        if kinds is not None and len(left) < len(kinds):
            changed[slot.name] = dataclasses.replace(stage, kinds=left) if left else slot.nothing()
    off = tuple(slot for slot, stage in changed.items() if isinstance(stage, Nothing))
    named = {field: getattr(pipeline.score, field) for field in NAMING if hasattr(pipeline.score, field)}
    kept = {field: {name: value for name, value in names.items() if _found(name, here, off)}
            for field, names in named.items()}
    if kept != named:
        score: Any = pipeline.score
        changed["score"] = dataclasses.replace(score, **kept)
    return pipeline.replace(**changed) if changed else pipeline


def _found(name: str, kinds: set[str], off: tuple[str, ...]) -> bool:
    """Return whether a lane's name can fit one: late_window and late_session are lanes of the slot late."""
    lane, _, kind = name.partition(":")
    return (not kind or kind in kinds) and not any(lane == slot or lane.startswith(f"{slot}_") for slot in off)
