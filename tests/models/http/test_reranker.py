"""Relevance scores over HTTP: one request a query, scores in place, replies that must not be believed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memlab.errors import MemlabError
from memlab.models.http.reranker import HttpReranker
from memlab.models.protocols import PairScorer
from memlab.store import Store
from memlab.tables import texts_frame
from tests.models.loopback import Loopback, relevance, serving

QUERIES, PASSAGES = [f"q{i}" for i in range(3)], [f"p{i}" for i in range(5)]
PAIRS = np.array([(q, p) for p in range(5) for q in range(3)])


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    monkeypatch.setattr("memlab.models.http.client.FIRST_WAIT", 0.01)
    with serving() as loopback:
        yield loopback


def reranker(world: Loopback, **options: Any) -> HttpReranker:
    return HttpReranker(**{"url": world.url, "model": "m", "batch": 2, "retries": 2, **options})


def test_scores_are_in_place_whatever_fails_meanwhile(world: Loopback, tmp_path: Path) -> None:
    world.faults = ["503", "not json", "", "cut off"]
    model = reranker(world)
    assert isinstance(model, PairScorer)
    scores = Store(tmp_path).pair_scores(model, texts_frame(QUERIES), texts_frame(PASSAGES), PAIRS)
    np.testing.assert_allclose(scores, [relevance(QUERIES[q], PASSAGES[p]) for q, p in PAIRS], atol=1e-6)
    assert len(world.bodies) == 9 + 3  # five passages a query in twos, three queries; three requests again
    assert all(body["top_n"] == len(body["documents"]) for body in world.bodies)


def test_a_request_holds_one_query_and_cut_passages(world: Loopback) -> None:
    list(reranker(world, max_characters=3, parallel=1).score(["q"], ["abcdef", ""], np.array([[0, 1], [0, 0]])))
    assert world.bodies == [{"model": "m", "query": "q", "documents": [" ", "abc"], "top_n": 2}]


def test_no_pairs_no_request(world: Loopback) -> None:
    assert list(reranker(world).score([], [], np.empty((0, 2), np.int64))) == []
    assert world.bodies == []


@pytest.mark.parametrize("fault", ["few", "twice", "form"])
def test_wrong_replies_are_named(world: Loopback, fault: str) -> None:
    world.faults = [fault]
    with pytest.raises(MemlabError, match="does not hold a score for each of 2 passages"):
        list(reranker(world, parallel=1).score(QUERIES, PASSAGES, PAIRS))


@pytest.mark.parametrize("fault", ["nan", "null"])
def test_a_nan_is_refused_by_the_store(world: Loopback, tmp_path: Path, fault: str) -> None:
    world.faults = [fault]
    with pytest.raises(MemlabError, match="m gave NaN for 'q0' with 'p"):
        Store(tmp_path).pair_scores(reranker(world, parallel=1), texts_frame(QUERIES), texts_frame(PASSAGES), PAIRS)


def test_identity_knows_neither_address_nor_key(world: Loopback) -> None:
    assert reranker(world).identity() == reranker(world, url="http://elsewhere", key_env="LAB_KEY").identity()
