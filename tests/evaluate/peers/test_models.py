from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from memlab.evaluate.peers.models import PeerModels
from memlab.models.chat.openai import OpenAIChat
from memlab.store import Store
from tests.models.chatserver import serving
from tests.stages.search.world import WordEmbedder


def ask(models: PeerModels, folder: Path, route: str, body: object) -> httpx.Response:
    transport = httpx.HTTPTransport(uds=str(folder / "models"))
    with models.served(str(folder)), httpx.Client(transport=transport) as client:
        return client.post(f"http://memlab/v1/{route}", content=json.dumps(body))


def test_vectors_are_those_of_the_store(tmp_path: Path) -> None:
    store, texts = Store(tmp_path), ["a cat", "two dogs"]
    models = PeerModels(store, WordEmbedder())
    models.prepare(texts)
    assert store.made["vectors"] == 2
    plain = ask(models, tmp_path, "embeddings", {"input": [*texts, "a new text"]}).json()["data"]
    assert [one["index"] for one in plain] == [0, 1, 2]
    (tmp_path / "models").unlink()
    again = ask(models, tmp_path, "embeddings", {"input": "two dogs", "encoding_format": "base64"}).json()["data"]
    assert again[0]["embedding"] == plain[1]["embedding"] == models.embeddings({"input": "two dogs"})["data"][0][
        "embedding"]


@pytest.mark.parametrize(("route", "body", "why"), [
    ("embeddings", {}, "input"),
    ("chat/completions", {"messages": []}, "no chat model was named"),
    ("rerank", {}, "rerank")])
def test_what_cannot_be_answered_gets_the_reason(tmp_path: Path, route: str, body: object, why: str) -> None:
    reply = ask(PeerModels(Store(tmp_path), WordEmbedder()), tmp_path, route, body)
    assert reply.status_code == 400
    assert why in reply.json()["error"]["message"]


def test_a_chat_model_is_asked_once_for_the_same_prompt(tmp_path: Path) -> None:
    body = {"model": "any", "messages": [{"role": "user", "content": "Hello"}]}
    with serving() as server:
        models = PeerModels(Store(tmp_path), WordEmbedder(), OpenAIChat(model="tiny", url=server.url))
        first = ask(models, tmp_path, "chat/completions", body).json()
        (tmp_path / "models").unlink()
        assert ask(models, tmp_path, "chat/completions", body).json() == first
        assert len(server.requests) == 1
    assert first["choices"][0]["message"] == {"role": "assistant", "content": "You said: Hello"}
