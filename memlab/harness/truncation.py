"""How many keys a model sees only the beginning of: reported for every arm."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import MemlabError
from memlab.models.protocols import Embedder
from memlab.pipeline import LANES, Pipeline
from memlab.store import Store
from memlab.tables import Tables


def truncated_share(pipeline: Pipeline, tables: Tables, store: Store) -> dict[str, float]:
    """Give, by kind of memory that it searches, the share of keys of which an embedder sees only the beginning.

    The embedder is that of the first lane that has one; nothing where none has. A key counts once.
    """
    lane: Any = next((s for slot, s in pipeline.stages() if slot in LANES and hasattr(s, "embedder")), None)
    if lane is None:
        return {}
    found: dict[str, float] = {}
    for (kind,), part in tables["memories"].select("kind", "key").unique().group_by(["kind"], maintain_order=True):
        if kind in (getattr(lane, "kinds", None) or (kind,)):
            keys = tables["texts"].join(part.select("key"), left_on="hash", right_on="key", how="semi")
            cut = truncated(lane.embedder, keys, store)
            found[str(kind)] = round(float(cut.mean()), 4) if len(cut) else 0.0
    return dict(sorted(found.items()))


def truncated(embedder: Embedder, texts: pl.DataFrame, store: Store) -> NDArray[np.bool_]:
    """Tell of each of some documents (n,) whether it is cut; the store need not be one that can be written."""
    try:
        return store.truncated(embedder, texts, "document")
    except MemlabError:  # a store that may only be read, a full disk: no reason to lose an arm
        return embedder.truncated(texts["text"].to_list(), "document")
