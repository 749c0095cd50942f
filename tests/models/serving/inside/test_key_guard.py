from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from memlab.models.serving.inside.key_guard import KeyGuard
from memlab.models.serving.vllm_command import INSIDE


def ask(path: str, key: str | None, kind: str = "http") -> list[dict[str, Any]]:
    """Return what the guarded application sends."""
    sent: list[dict[str, Any]] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "answered"})

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {}

    headers = [(b"host", b"n1")] + ([(b"authorization", f"Bearer {key}".encode())] if key is not None else [])
    scope = {"type": kind, **({} if kind == "lifespan" else {"path": path, "headers": headers})}
    asyncio.run(KeyGuard(application)(scope, receive, send))
    return sent


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "right")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/invocations", "/tokenize", "/metrics", "/", "/health/x"])
def test_nothing_is_answered_without_the_key(path: str) -> None:
    assert ask(path, "right") == [{"type": "answered"}]
    for wrong in (None, "", "wrong", "right "):
        assert ask(path, wrong)[0]["status"] == 401
    assert ask(path, "wrong", "websocket") == [{"type": "websocket.close", "code": 1008}]


def test_health_and_the_servers_own_start_need_none() -> None:
    assert ask("/health", None) == [{"type": "answered"}]
    assert ask("", None, "lifespan") == [{"type": "answered"}]


def test_it_needs_nothing_but_the_standard_library() -> None:
    line = [sys.executable, "-S", "-c", "import key_guard; key_guard.KeyGuard"]
    subprocess.run(line, check=True, env={"PYTHONPATH": str(INSIDE)})
