"""The share of keys of which an embedder sees only the beginning, reported for every arm."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import MemlabError
from memlab.models.protocols import Embedder, embedders_in
from memlab.pipeline import Pipeline
from memlab.search.as_of import of_kinds
from memlab.slots import LANES
from memlab.stage import Stage
from memlab.store import Store
from memlab.tables import Tables


def truncated_share(pipeline: Pipeline, tables: Tables, store: Store) -> dict[str, float]:
    """Return, for each kind of memory that is searched, the share of distinct keys that the embedder truncates.

    The embedder is that of the first lane that has one; the result is empty where none has.
    """
    stage, embedder = next(lane_embedders(pipeline), (None, None))
    if embedder is None:
        return {}
    shares: dict[str, float] = {}
    memories = of_kinds(tables["memories"], getattr(stage, "kinds", None))
    for (kind,), part in memories.select("kind", "key_id").unique().group_by(["kind"], maintain_order=True):
        keys = tables["texts"].join(part, left_on="text_id", right_on="key_id", how="semi")
        cut = truncated(embedder, keys, store)
        shares[str(kind)] = round(float(cut.mean()), 4) if len(cut) else 0.0
    return dict(sorted(shares.items()))


def lane_embedders(pipeline: Pipeline) -> Iterator[tuple[Stage, Embedder]]:
    """Yield (stage, embedder) for every lane that encodes keys and queries."""
    for slot, stage in pipeline.stages():
        if slot in LANES:
            yield from ((stage, embedder) for embedder in embedders_in(stage))


def truncated(embedder: Embedder, texts: pl.DataFrame, store: Store) -> NDArray[np.bool_]:
    """Return for each document (n,) whether it is truncated; a store that cannot be written is no fault."""
    try:
        return store.truncated(embedder, texts, "document")
    except MemlabError:  # a read-only store or a full disk is no reason to lose an arm
        return embedder.truncated(texts["text"].to_list(), "document")
