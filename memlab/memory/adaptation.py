"""The pipeline of a question, adapted to the kinds of memories in a live memory, its filter and its number of results.

In an experiment, the name of a kind that no memory has is a fault. A live memory accepts it: the first session may
hold no turn of the user. So searches and weights of such kinds are left out.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import polars as pl

from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.slots import LANES, SLOTS
from memlab.pipeline.stage import EmptyStage
from memlab.pipeline.tables import Tables, as_of
from memlab.stages.rank.score import may_lack
from memlab.stages.search.exact import Flat
from memlab.stages.search.faiss_index import Approximate

_BY_LANE = ("weights", "floors", "factors")
"""Fields of a score that map names of lanes to numbers."""


def adapt_to_data(pipeline: Pipeline, tables: Tables) -> Pipeline:
    """Return the pipeline without searches and weights for kinds of which the one question can see no memory."""
    day = pl.lit(tables["questions"]["asked_on"][0], pl.Datetime("us"))
    kinds = set(tables["memories"].filter(as_of(asked=day))["kind"].unique())
    if not kinds:
        return pipeline
    changed: dict[str, Any] = {}
    for slot in SLOTS:
        stage = getattr(pipeline, slot.name)
        searched = getattr(stage, "kinds", None) or ()
        present = tuple(kind for kind in searched if kind in kinds)
        if slot.name in LANES and present != tuple(searched):
            changed[slot.name] = dataclasses.replace(stage, kinds=present) if present else EmptyStage(writes=slot.empty)
    empty = tuple(slot for slot, stage in changed.items() if isinstance(stage, EmptyStage))
    score: Any = pipeline.score
    numbers = {field: getattr(score, field) for field in _BY_LANE if hasattr(score, field)}
    fitting = {field: {name: value for name, value in by_lane.items() if _fits(name, kinds, empty)}
               for field, by_lane in numbers.items()}
    if fitting != numbers:
        changed["score"] = dataclasses.replace(score, **fitting)
    return pipeline.replace(**changed) if changed else pipeline


def with_depth(pipeline: Pipeline, k: int | None) -> Pipeline:
    """Return the pipeline with searches that return at least ``k`` results."""
    stages = {slot: getattr(pipeline, slot) for slot in LANES}
    return pipeline.replace(**{slot: dataclasses.replace(stage, depth=int(k)) for slot, stage in stages.items()
                               if k is not None and getattr(stage, "depth", k) < k})


def with_exact_search(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline with an exact search by vectors: building an index takes longer than a filter is used."""
    if not isinstance(getattr(pipeline.dense, "index", None), Approximate):
        return pipeline
    return pipeline.replace(dense=dataclasses.replace(pipeline.dense, index=Flat()))  # type: ignore[type-var]


def _fits(name: str, kinds: set[str], empty: tuple[str, ...]) -> bool:
    """Return whether there can be a lane of this name, be it without values as in an experiment (``may_lack``).

    late_window and late_session are lanes of the slot late.
    """
    lane, _, kind = name.partition(":")
    searched = not any(lane == slot or lane.startswith(f"{slot}_") for slot in empty)
    return searched and (not kind or kind in kinds or may_lack(name))
