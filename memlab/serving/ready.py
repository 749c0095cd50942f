"""Readiness: a real request is answered, since /health also answers for models that crash at the first request."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from memlab.errors import MemlabError
from memlab.runtime.progress import clock
from memlab.serving import process as processes
from memlab.serving.settings import Runner

_CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 4, "temperature": 0}
PROBES: dict[Runner, dict[str, tuple[str, dict[str, Any], str]]] = {
    "generate": {"chat": ("/chat/completions", _CHAT, "choices")},
    "pooling": {"embeddings": ("/embeddings", {"input": ["hello"]}, "data"),
                "score": ("/score", {"text_1": "hello", "text_2": "hello"}, "data")},
}
"""Runner -> task -> (path, request, a field of every valid answer)."""

_BETWEEN = 0.5  # seconds between two requests to a server that does not listen yet
_ANSWER = 300.0  # seconds for the first answer: a CPU may compile for minutes


@dataclass(frozen=True)
class Ready:
    """A ready server's task ("chat", "embeddings" or "score"), the length of an embedding, and the window."""

    task: str
    dimensions: int | None
    window: int | None


def wait(server: subprocess.Popen[bytes], url: str, key: str, model: str, runner: Runner, log: Path, *,
         timeout: float, show: Callable[[float, str], None]) -> Ready:
    """Return a server's task as soon as it has answered a real request.

    ``show(seconds, last line of the log)`` is called twice per second. Raises MemlabError if the server ends, refuses
    every kind of request, or is not ready within ``timeout`` seconds.
    """
    start = time.monotonic()
    with httpx.Client(headers={"Authorization": f"Bearer {key}"}, timeout=httpx.Timeout(_ANSWER, connect=5),
                      trust_env=False) as client:  # the environment's proxy does not lead to this machine itself
        while True:
            if (status := server.poll()) is not None:
                raise processes.death(status, log)
            elapsed = time.monotonic() - start
            if elapsed > timeout:
                raise MemlabError(f"not ready after {clock(elapsed)}{processes.last_lines(log)}\n", where=str(log),
                                  fix="--timeout SECONDS")
            if ready := _ask(client, url, model, runner, timeout - elapsed):
                return ready
            show(elapsed, next(reversed(processes.tail(log, 4000)), ""))
            time.sleep(_BETWEEN)


def _ask(client: httpx.Client, url: str, model: str, runner: Runner, remaining: float) -> Ready | None:
    """Send the requests that prove readiness; return None if the server does not answer yet."""
    refusals = []
    for task, (path, request, field) in PROBES[runner].items():
        try:
            reply = client.post(url + path, json={"model": model, **request},
                                timeout=httpx.Timeout(min(_ANSWER, max(remaining, 1.0)), connect=5))
        except httpx.TransportError:
            return None
        if reply.status_code == 503:  # up, and still loading
            return None
        if reply.status_code == 200 and _field(reply, field):
            length = len(_field(reply, "data", 0, "embedding")) if task == "embeddings" else None
            return Ready(task, length, _window(client, url))
        refusals.append(f"{path}: status {reply.status_code}, {reply.text[:200]}")
    raise MemlabError("the server is up but answers no request: " + "; ".join(refusals), where=url,
                      fix="a chat model needs a chat template; encoders and rerankers need --runner pooling")


def _window(client: httpx.Client, url: str) -> int | None:
    """Return the maximum tokens of prompt and reply together; None if the server does not report it."""
    with suppress(httpx.TransportError, ValueError, TypeError):
        return int(_field(client.get(url + "/models"), "data", 0, "max_model_len"))
    return None


def _field(reply: httpx.Response, *path: str | int) -> Any:
    """Return a field of a JSON reply; None if there is no such field, or the reply is not JSON."""
    try:
        value = reply.json()
        for key in path:
            value = value[key]
    except (ValueError, LookupError, TypeError):
        return None
    return value
