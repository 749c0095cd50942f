"""How many keys a model sees only the beginning of: reported for every arm."""

from __future__ import annotations

from typing import Any

from memlab.pipeline import LANES, Pipeline
from memlab.store import Store
from memlab.tables import Tables


def truncated_share(pipeline: Pipeline, tables: Tables, store: Store) -> dict[str, float]:
    """Give, by kind of memory, the share of distinct keys of which the embedder sees only the beginning.

    Nothing where no lane has an embedder.
    """
    embedder: Any = next((s.embedder for slot, s in pipeline.stages() if slot in LANES and hasattr(s, "embedder")),
                         None)
    if embedder is None:
        return {}
    found: dict[str, float] = {}
    for (kind,), part in tables["memories"].select("kind", "key").unique().group_by(["kind"], maintain_order=True):
        keys = tables["texts"].join(part.select("key"), left_on="hash", right_on="key", how="semi")
        cut = store.truncated(embedder, keys, "document")
        found[str(kind)] = round(float(cut.mean()), 4) if len(cut) else 0.0
    return dict(sorted(found.items()))
