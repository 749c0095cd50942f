"""The share of keys that a model sees only the beginning of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from memlab.experiment.harness.run_tables import truncated_share
from memlab.stages.search.dense import Dense
from memlab.stages.write.chunk import Levels, SessionChunker, TurnChunker
from memlab.store import Store
from tests.small import lexical, lives
from tests.store.worker import DigestEmbedder


class Short(DigestEmbedder):
    """Reads 50 characters; counts how often it is asked."""

    times = 0

    def truncated(self, texts: Sequence[str], role: str) -> np.ndarray:
        Short.times += 1
        return np.array([len(t) > 50 for t in texts])


def test_the_share_of_distinct_keys_by_kind_each_text_counted_once(tmp_path: Path) -> None:
    pipeline = lexical(chunk=Levels(chunkers=[TurnChunker(), SessionChunker()]), dense=Dense(embedder=Short("short")))
    tables = pipeline.run(lives().load(), Store(tmp_path))
    texts = dict(tables["texts"].iter_rows())
    share = {}
    for kind in ("turn", "session"):
        keys = set(tables["memories"].filter(kind=kind)["key_id"])
        share[kind] = round(sum(len(texts[k]) > 50 for k in keys) / len(keys), 4)
    assert truncated_share(pipeline, tables, Store(tmp_path)) == share
    assert share["session"] == 1
    assert 0 < share["turn"] < 1
    assert truncated_share(pipeline, tables, Store(tmp_path)) == share  # another process reads it from the store
    assert Short.times == 2


def test_a_lane_that_searches_some_kinds_tells_of_those(tmp_path: Path) -> None:
    pipeline = lexical(chunk=Levels(chunkers=[TurnChunker(), SessionChunker()]),
                       dense=Dense(embedder=Short("short"), kinds=("session",)))
    tables = pipeline.run(lives().load(), Store(tmp_path))
    assert truncated_share(pipeline, tables, Store(tmp_path)) == {"session": 1.0}
