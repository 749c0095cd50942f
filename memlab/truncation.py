"""How many keys a model sees only the beginning of: reported for every arm."""

from __future__ import annotations

from typing import Any

from memlab.pipeline import LANES, Pipeline
from memlab.stage import spec_digest
from memlab.tables import Tables

_SHARES: dict[str, float] = {}


def truncated_share(pipeline: Pipeline, tables: Tables) -> dict[str, float]:
    """Give, by kind of memory, the share of distinct keys of which the embedder sees only the beginning.

    Nothing where no lane has an embedder. Counted once a process for the same keys.
    """
    embedder: Any = next((s.embedder for slot, s in pipeline.stages() if slot in LANES and hasattr(s, "embedder")),
                         None)
    if embedder is None:
        return {}
    found: dict[str, float] = {}
    for (kind,), part in tables["memories"].select("kind", "key").unique().group_by(["kind"], maintain_order=True):
        keys = tables["texts"].join(part.select("key"), left_on="hash", right_on="key", how="semi").sort("hash")
        seen = spec_digest(embedder) + spec_digest(keys["hash"].to_list())
        if seen not in _SHARES:
            cut = embedder.truncated(keys["text"].to_list(), "document")
            _SHARES[seen] = float(cut.mean()) if len(cut) else 0.0
        found[str(kind)] = round(_SHARES[seen], 4)
    return dict(sorted(found.items()))
