"""Scoring before the arms run: scores that several jobs share are computed once, and no others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from memlab.experiment.cluster.shards import run_part, score, shared_groups, work_keys
from memlab.experiment.harness.arm import Arm
from memlab.models.protocols import PairScorer
from memlab.pipeline.pipeline import _MEMO, Pipeline
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import Tables, distinct_texts
from memlab.stages.rank.rerank import Rerank
from memlab.stages.rank.select import Fixed
from memlab.stages.search.dense import Dense
from memlab.stages.search.hits import HitsBuilder, pools
from memlab.stages.search.late_interaction import WeightedLate
from memlab.store import Store
from tests.small import arm, lexical, lives
from tests.stages.search.world import Overlap, WordEmbedder
from tests.token_words import TokenWords


@dataclass(frozen=True)
class Other(Overlap):
    """A second scorer."""

    def identity(self) -> dict[str, Any]:
        return {"is": "other"}


def fresh(root: Path) -> Store:
    """A store as another process opens it, which remembers nothing of this one's."""
    _MEMO.clear()
    return Store(root)


def reranked(k: int, scorer: Overlap, **stages: Any) -> Pipeline:
    return lexical(rerank=Rerank(scorer=scorer, pool=10), select=Fixed(k=k), **stages)


@stage
class Pairs:
    """A search of a plug-in that scores every visible pair by a model."""

    reads: ClassVar = ("queries", "questions", "memories", "texts")
    writes: ClassVar = ("hits",)

    scorer: PairScorer

    def run(self, tables: Tables, store: Store) -> Tables:
        queries, memories = tables["queries"], tables["memories"]
        asked, asked_of = distinct_texts(tables["texts"], queries["text_id"])
        keys, key_of = distinct_texts(tables["texts"], memories["key_id"])
        hits = HitsBuilder()
        for pool in pools(queries, tables["questions"], memories):
            for query, seen in zip(pool.queries.tolist(), pool.visible.tolist()):
                rows = pool.memories[:seen]
                pairs = np.stack([np.full(seen, asked_of[query]), key_of[rows]], axis=1)
                hits.add("late:turn", queries["query"][query], memories["memory"].to_numpy()[rows],
                         store.pair_scores(self.scorer, asked, keys, pairs), 1000)
        return Tables(hits=hits.frame())


def arms(root: Path, *pipelines: Pipeline) -> list[Arm]:
    return [arm(root, one, name=str(n)) for n, one in enumerate(pipelines)]


def test_the_key_of_work_is_made_of_the_data_and_all_stages_up_to_it(tmp_path: Path) -> None:
    def keys(pipeline: Pipeline, data: Any = None) -> dict[str, str]:
        return work_keys(arm(tmp_path, pipeline, data))

    assert keys(lexical()) == {}
    assert keys(Pipeline(dense=Dense(embedder=WordEmbedder()))) == {}  # the preparation makes a lane's vectors
    assert keys(lexical(late=WeightedLate(matcher=TokenWords()))) == {}
    one, same, other = (keys(reranked(k, scorer)) for k, scorer in ((3, Overlap()), (5, Overlap()), (3, Other())))
    assert list(one) == ["rerank"]
    assert one == same != other
    assert keys(reranked(3, Overlap()), lives(seed=7)) != one
    late = keys(reranked(3, Overlap(), late=Pairs(scorer=Overlap())))
    assert list(late) == ["late", "rerank"]
    assert late["rerank"] != one["rerank"]


def test_only_what_jobs_share_is_grouped_and_no_two_groups_share(tmp_path: Path) -> None:
    some = arms(tmp_path, *(reranked(k, scorer) for scorer in (Overlap(), Other()) for k in (3, 5)), lexical())
    apart = [[n] for n in range(5)]
    assert shared_groups(some, apart) == [(0, 1), (2, 3)]
    assert shared_groups(some, [[0, 1], [2, 3], [4]]) == []  # each job shares with itself alone
    assert shared_groups(some, [[0], [2], [4]]) == []
    lanes = arms(tmp_path, *(reranked(3, scorer, late=Pairs(scorer=Overlap())) for scorer in (Overlap(), Other())))
    assert shared_groups(lanes, [[0], [1]]) == [(0, 1)]  # they share the lane, whatever reranks behind it


def test_of_a_jobs_arms_that_share_the_same_one_stands_for_all(tmp_path: Path) -> None:
    some = arms(tmp_path, *(reranked(k, scorer, late=Pairs(scorer=Overlap()))
                            for scorer in (Overlap(), Other()) for k in (3, 5)))
    assert shared_groups(some, [[0, 1], [2, 3]]) == [(0, 2)]  # the lane; each reranker is left to its own job
    assert shared_groups(some, [[0, 2], [1, 3]]) == [(0, 1, 2, 3)]  # both rerankers are shared
    store = fresh(tmp_path / "store")
    score([some[0], some[2]], store)
    lane = fresh(tmp_path / "lane")
    arm(tmp_path / "lane-runs", lexical(late=Pairs(scorer=Overlap()))).run(lane)
    assert store.made["pairs"] == lane.made["pairs"] > 0


@pytest.mark.parametrize("of", [1, 3])
def test_after_it_no_arm_scores_what_was_shared(of: int, tmp_path: Path) -> None:
    pipelines = [*(reranked(k, Overlap(), late=Pairs(scorer=Other())) for k in (3, 5)),
                 lexical(late=Pairs(scorer=Other()))]
    some = arms(tmp_path, *pipelines)
    made: Counter[str] = Counter()
    for part in range(of):
        store = fresh(tmp_path / "store")
        score(some, store, part, of)
        made += store.made
    assert made["pairs"] > 0
    store = fresh(tmp_path / "store")
    for one in some:
        for part in range(of):
            run_part(one, store, part, of)
        one.run(store)
    assert store.made["pairs"] == 0
    alone = fresh(tmp_path / "alone")
    for one in arms(tmp_path / "alone-runs", *pipelines):
        one.run(alone)
    assert made["pairs"] == alone.made["pairs"]
