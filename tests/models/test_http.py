"""Embeddings and relevance scores over HTTP: forms, batches, cuts, and replies that must not be believed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from memlab.models.http import HttpEmbedder, HttpReranker
from memlab.models.protocols import Embedder, PairScorer
from memlab.pipeline.tables import texts_frame
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.models.service import Service, install, refusal, stop_clock

DIM = 6
TEXTS = [f"text {i}" for i in range(10)]
QUERIES, PASSAGES = [f"q{i}" for i in range(3)], [f"p{i}" for i in range(5)]
PAIRS = np.array([(q, p) for p in range(5) for q in range(3)])


def text_vector(text: str) -> list[float]:
    """A deterministic vector, not of unit length."""
    return [byte / 255 - 0.5 for byte in hashlib.blake2b(text.encode(), digest_size=DIM).digest()]


def unit(texts: list[str]) -> np.ndarray:
    vectors = np.array([text_vector(text) for text in texts])
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def answer(body: dict[str, Any]) -> dict[str, Any]:
    """Answer in another order than asked."""
    if "input" in body:
        return {"data": [{"index": i, "embedding": text_vector(t)} for i, t in enumerate(body["input"])][::-1]}
    scores = [text_vector(f"{body['query']}|{text}")[0] for text in body["documents"]]
    return {"results": [{"index": i, "relevance_score": score} for i, score in enumerate(scores)][::-1]}


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    stop_clock(monkeypatch)
    return install(monkeypatch, answer)


def embedder(**options: Any) -> HttpEmbedder:
    return HttpEmbedder(**{"url": "http://h/v1", "model": "m", "dimensions": DIM, "batch": 3, "retries": 2, **options})


def reranker(**options: Any) -> HttpReranker:
    return HttpReranker(**{"url": "http://h/v1", "model": "m", "batch": 2, "retries": 2, **options})


def test_vectors_are_unit_length_and_in_place_whatever_fails_meanwhile(service: Service, tmp_path: Path) -> None:
    service.faults = [refusal(429), refusal(500), httpx.ReadError("cut off")]
    assert isinstance(embedder(), Embedder)
    vectors = Store(tmp_path).vectors(embedder(parallel=3, retries=3), texts_frame(TEXTS), "document")
    np.testing.assert_allclose(vectors, unit(TEXTS), atol=1e-6)
    assert len(service.requests) == 4 + 3  # four requests of three texts, three of them again


def test_the_two_forms(service: Service) -> None:
    list(embedder(ask_dimensions=True, query_prefix="q: ").encode(["x"], "query"))
    list(embedder(ask_dimensions=True, form="voyage").encode(["x"], "query"))
    list(embedder(form="voyage").encode(["x"], "document"))
    assert service.bodies == [
        {"model": "m", "input": ["q: x"], "dimensions": DIM},
        {"model": "m", "input": ["x"], "input_type": "query", "output_dimension": DIM},
        {"model": "m", "input": ["x"], "input_type": "document"},
    ]


def test_batches_keep_both_limits(service: Service) -> None:
    texts = ["a" * 5, "b" * 5, "c" * 30, "", "d", "e", "f\ud800"]
    list(embedder(batch_characters=12, parallel=1).encode(texts, "document"))
    assert [body["input"] for body in service.bodies] == [["aaaaa", "bbbbb"], ["c" * 30], [" ", "d", "e"], ["f\ufffd"]]


def test_long_texts_are_cut_and_known_to_be(service: Service) -> None:
    model = embedder(max_characters=4, document_prefix="d:")
    list(model.encode(["abcdef", "ab"], "document"))
    assert service.bodies[0]["input"] == ["d:ab", "d:ab"]
    assert model.truncated(["abcdef", "ab"], "document").tolist() == [True, False]
    assert model.truncated(["abcd"], "query").tolist() == [False]


def changed(change: str) -> Any:
    """Answer with one item too few, one twice, vectors that are too short, or a value that is none."""
    def changed_answer(body: dict[str, Any]) -> dict[str, Any]:
        reply = answer(body)
        items = reply.get("data") or reply["results"]
        field = "embedding" if "data" in reply else "relevance_score"
        if change == "few":
            items.pop()
        elif change == "twice":
            items[0]["index"] = items[-1]["index"]
        elif change == "short":
            for item in items:
                item[field].pop()
        else:
            value = {"null": None, "nan": float("nan"), "huge": 10**400 if field == "embedding" else 1e300}[change]
            items[0][field] = [value] * DIM if field == "embedding" else value
        return reply

    return changed_answer


@pytest.mark.parametrize(("change", "message"), [
    ("few", "does not hold 3 vectors"), ("twice", "does not hold 3 vectors"), ("huge", "does not hold 3 vectors"),
    ("short", "vectors of length 5, expected 6 .dimensions.*Fix: embedder.dimensions=5")])
def test_wrong_replies_are_named(change: str, message: str, service: Service) -> None:
    service.answer = changed(change)
    with pytest.raises(MemlabError, match=message):
        list(embedder(parallel=1).encode(TEXTS[:3], "document"))


@pytest.mark.parametrize("change", ["few", "twice"])
def test_wrong_scores_are_named(change: str, service: Service) -> None:
    service.answer = changed(change)
    with pytest.raises(MemlabError, match="does not hold a score for each of 2 passages"):
        list(reranker(parallel=1).score(QUERIES, PASSAGES, PAIRS))


@pytest.mark.parametrize("change", ["nan", "null"])
def test_a_number_that_is_none_is_refused_by_the_store_and_earlier_replies_stay(
        change: str, service: Service, tmp_path: Path) -> None:
    texts, store = texts_frame(TEXTS), Store(tmp_path)
    service.answer = lambda body: (answer if body["input"][0] == "text 0" else changed(change))(body)
    with pytest.raises(MemlabError, match="m gave NaN for 'text 5'"):
        store.vectors(embedder(parallel=1), texts, "document")
    assert store.missing(embedder(), texts, "document") == 7
    service.answer = changed(change)
    with pytest.raises(MemlabError, match="m gave NaN for 'q0' with 'p"):
        store.pair_scores(reranker(parallel=1), texts_frame(QUERIES), texts_frame(PASSAGES), PAIRS)


def test_identities_know_neither_address_nor_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KEY", "very-secret")
    for make in (embedder, reranker):
        assert make(key_env="LAB_KEY").identity() == make(url="http://elsewhere/v1").identity()
    assert "very-secret" not in repr(embedder(key_env="LAB_KEY"))
    assert embedder(form="voyage").identity() != embedder().identity()


def test_scores_are_in_place_whatever_fails_meanwhile(service: Service, tmp_path: Path) -> None:
    service.faults = [refusal(503), httpx.Response(200, content=b"<html>"), httpx.ReadError("cut off")]
    assert isinstance(reranker(), PairScorer)
    scores = Store(tmp_path).pair_scores(reranker(retries=3), texts_frame(QUERIES), texts_frame(PASSAGES), PAIRS)
    np.testing.assert_allclose(scores, [text_vector(f"{QUERIES[q]}|{PASSAGES[p]}")[0] for q, p in PAIRS], atol=1e-6)
    assert len(service.requests) == 9 + 3  # five passages a query in twos, three queries; three requests again
    assert all(body["top_n"] == len(body["documents"]) for body in service.bodies)


def test_a_request_holds_one_query_and_cut_passages(service: Service) -> None:
    list(reranker(max_characters=3, parallel=1).score(["q"], ["abcdef", ""], np.array([[0, 1], [0, 0]])))
    assert service.bodies == [{"model": "m", "query": "q", "documents": [" ", "abc"], "top_n": 2}]
    assert list(reranker().score([], [], np.empty((0, 2), np.int64))) == []
    assert len(service.requests) == 1
