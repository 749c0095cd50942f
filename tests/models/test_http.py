"""Embeddings and relevance scores over HTTP: forms, batches, cuts, and replies that must not be believed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from memlab.errors import MemlabError
from memlab.models.http import HttpEmbedder, HttpReranker
from memlab.models.protocols import Embedder, PairScorer
from memlab.store import Store
from memlab.tables import texts_frame
from tests.models.loopback import DIM, Loopback, relevance, serving, unit

TEXTS = [f"text {i}" for i in range(10)]
QUERIES, PASSAGES = [f"q{i}" for i in range(3)], [f"p{i}" for i in range(5)]
PAIRS = np.array([(q, p) for p in range(5) for q in range(3)])


@pytest.fixture
def world() -> Iterator[Loopback]:
    with serving() as loopback:
        yield loopback


def embedder(world: Loopback, **options: Any) -> HttpEmbedder:
    return HttpEmbedder(**{"url": world.url, "model": "m", "dimensions": DIM, "batch": 3, "retries": 2,
                           "first_wait": .01, **options})


def test_vectors_are_unit_length_and_in_place_whatever_fails_meanwhile(world: Loopback, tmp_path: Path) -> None:
    world.faults = ["429", "cut off", "", "500"]
    model = embedder(world, parallel=3)
    assert isinstance(model, Embedder)
    vectors = Store(tmp_path).vectors(model, texts_frame(TEXTS), "document")
    np.testing.assert_allclose(vectors, unit(TEXTS), atol=1e-6)
    assert len(world.bodies) == 4 + 3  # four requests of three texts, three of them again


def test_the_two_forms(world: Loopback) -> None:
    list(embedder(world, ask_dimensions=True, query_prefix="q: ").encode(["x"], "query"))
    list(embedder(world, ask_dimensions=True, form="voyage").encode(["x"], "query"))
    list(embedder(world, form="voyage").encode(["x"], "document"))
    assert world.bodies == [
        {"model": "m", "input": ["q: x"], "dimensions": DIM},
        {"model": "m", "input": ["x"], "input_type": "query", "output_dimension": DIM},
        {"model": "m", "input": ["x"], "input_type": "document"},
    ]


def test_batches_keep_both_limits(world: Loopback) -> None:
    texts = ["a" * 5, "b" * 5, "c" * 30, "", "d", "e", "f"]
    list(embedder(world, batch_characters=12, parallel=1).encode(texts, "document"))
    assert [body["input"] for body in world.bodies] == [["aaaaa", "bbbbb"], ["c" * 30], [" ", "d", "e"], ["f"]]


def test_long_texts_are_cut_and_known_to_be(world: Loopback) -> None:
    model = embedder(world, max_characters=4, document_prefix="d:")
    list(model.encode(["abcdef", "ab"], "document"))
    assert world.bodies[0]["input"] == ["d:ab", "d:ab"]
    assert model.truncated(["abcdef", "ab"], "document").tolist() == [True, False]
    assert model.truncated(["abcd"], "query").tolist() == [False]


@pytest.mark.parametrize(("fault", "told"), [("few", "does not hold 3 vectors"), ("twice", "does not hold 3 vectors"),
                                             ("short", "length 5, expected 3 of length 6"),
                                             ("form", "does not hold 3 vectors")])
def test_wrong_replies_are_named(world: Loopback, fault: str, told: str) -> None:
    world.faults = [fault] * 3
    with pytest.raises(MemlabError, match=told):
        list(embedder(world, parallel=1).encode(TEXTS[:3], "document"))


@pytest.mark.parametrize("fault", ["nan", "null"])
def test_a_nan_is_refused_by_the_store_and_earlier_replies_stay(world: Loopback, tmp_path: Path, fault: str) -> None:
    world.faults = ["", fault]
    model, texts = embedder(world, parallel=1), texts_frame(TEXTS)
    with pytest.raises(MemlabError, match="m gave NaN for 'text 5'"):
        Store(tmp_path).vectors(model, texts, "document")
    assert Store(tmp_path).missing(model, texts, "document") == 7


def test_identity_knows_neither_address_nor_key(world: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KEY", "very-secret")
    here, there = embedder(world, key_env="LAB_KEY"), embedder(world, url="http://elsewhere/v1")
    assert here.identity() == there.identity()
    assert "very-secret" not in repr(here)
    assert embedder(world, form="voyage").identity() != here.identity()


@pytest.mark.parametrize("wrong", [{"url": "ftp://x"}, {"dimensions": 0}, {"form": "cohere"}, {"key_env": "sk-123"}])
def test_faults_in_the_configuration(world: Loopback, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        embedder(world, **wrong)


def reranker(world: Loopback, **options: Any) -> HttpReranker:
    return HttpReranker(**{"url": world.url, "model": "m", "batch": 2, "retries": 2, "first_wait": .01, **options})


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
def test_wrong_scores_are_named(world: Loopback, fault: str) -> None:
    world.faults = [fault] * 3
    with pytest.raises(MemlabError, match="does not hold a score for each of 2 passages"):
        list(reranker(world, parallel=1).score(QUERIES, PASSAGES, PAIRS))


@pytest.mark.parametrize("fault", ["nan", "null"])
def test_a_score_that_is_no_number_is_refused_by_the_store(world: Loopback, tmp_path: Path, fault: str) -> None:
    world.faults = [fault]
    with pytest.raises(MemlabError, match="m gave NaN for 'q0' with 'p"):
        Store(tmp_path).pair_scores(reranker(world, parallel=1), texts_frame(QUERIES), texts_frame(PASSAGES), PAIRS)


def test_the_identity_of_a_reranker_knows_neither_address_nor_key(world: Loopback) -> None:
    assert reranker(world).identity() == reranker(world, url="http://elsewhere", key_env="LAB_KEY").identity()
