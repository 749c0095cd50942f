"""Encoding what all arms of a sweep need, before they run: each text once, however many arms search it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from memlab.arm import Arm, load
from memlab.models.held import held
from memlab.models.protocols import Role
from memlab.pipeline import LANES
from memlab.stage import spec_digest
from memlab.store import Store
from memlab.tables import Tables
from memlab.truncation import truncated

WRITTEN = "time"
"""The last slot before the searches: keys and queries are final behind it."""


def asks(arm: Arm) -> bool:
    """Tell whether an arm asks a model of any kind before it searches."""
    return any(held([stage for _, stage in arm.pipeline.between(None, WRITTEN)]))


def write(arms: Sequence[Arm], store: Store, part: int = 0, of: int = 1) -> None:
    """Run the slots before the searches, whole: what is asked of a session is asked once, whichever part has it."""
    del part, of
    for arm in arms:
        if not arm.finished():
            arm.pipeline.run(load(arm.dataset), store, until=WRITTEN)


def prepare(arms: Sequence[Arm], store: Store, part: int = 0, of: int = 1) -> None:
    """Encode the union of the arms' keys and queries; of several parts each takes the texts of its share of hashes.

    The slots before the searches run here as well, so that what they ask models for is in the store too.
    """
    done: set[tuple[str, str, str]] = set()
    for arm in arms:
        if arm.finished():
            continue
        tables = arm.pipeline.run(load(arm.dataset), store, until=WRITTEN)
        for stage in (stage for slot, stage in arm.pipeline.stages() if slot in LANES):
            embedder: Any = getattr(stage, "embedder", None)
            if embedder is None:
                continue
            for role, texts in _asked(stage, tables, part, of):
                key = (spec_digest(embedder), role, spec_digest(texts["hash"].to_list()))
                if texts.height and key not in done:
                    done.add(key)
                    for _ in store.iter_vectors(embedder, texts, role):
                        pass
                    if role == "document":  # every arm tells it, and should not load the model for that
                        truncated(embedder, texts, store)


def _asked(stage: Any, tables: Tables, part: int, of: int) -> list[tuple[Role, pl.DataFrame]]:
    """Return the texts of this part that a lane encodes, by role."""
    memories, kinds = tables["memories"], getattr(stage, "kinds", None)
    if kinds is not None:
        memories = memories.filter(pl.col("kind").is_in(list(kinds)))
    mine = tables["texts"].filter(pl.col("hash").str.slice(0, 8).str.to_integer(base=16, dtype=pl.Int64) % of == part)
    return [("document", mine.filter(pl.col("hash").is_in(memories["key"].unique().implode())).sort("hash")),
            ("query", mine.filter(pl.col("hash").is_in(tables["queries"]["text"].unique().implode())).sort("hash"))]
