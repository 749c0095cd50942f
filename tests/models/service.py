"""A service inside this process, in the place of httpx's transport, and a clock that does not wait."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
import pytest

from memlab.models import connection

Fault = httpx.Response | Exception
Answer = Callable[[dict[str, Any]], Any]

NOBODY = httpx.ConnectError("[Errno 111] Connection refused")


def chat_reply(text: str | None, finish: str | None = "stop", **choice: Any) -> dict[str, Any]:
    """Return a reply of a chat server, with as many tokens as words."""
    return {"choices": [{"message": {"content": text}, "finish_reason": finish, **choice}],
            "usage": {"prompt_tokens": 4, "completion_tokens": len((text or "").split())}}


def echo(body: dict[str, Any]) -> dict[str, Any]:
    """Answer with what was said last."""
    return chat_reply(f"You said: {body['messages'][-1]['content']}")


def refusal(status: int, message: str = "no", **fields: Any) -> httpx.Response:
    """Return an error in OpenAI's form."""
    return httpx.Response(status, json={"error": {"message": message, **fields}})


def _ok(answer: Any) -> httpx.Response:
    """Return a reply that is read as it comes, so that httpx measures its time."""
    return httpx.Response(200, stream=httpx.ByteStream(json.dumps(answer).encode()))


class Service:
    """Answers each request by ``answer(body)``, JSON or a response; ``faults`` come first, one a request."""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.faults = answer, list[Fault]()
        self.requests: list[httpx.Request] = []
        self.always: Fault | None = None
        self._lock = threading.Lock()

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """What was sent."""
        return [json.loads(request.content) for request in self.requests]

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, json={"data": [{"id": "tiny"}, {"id": "other\x1b"}]})
        with self._lock:
            self.requests.append(request)
            fault = self.faults.pop(0) if self.faults else self.always
        if isinstance(fault, Exception):
            raise fault
        if fault is not None:
            return httpx.Response(fault.status_code, headers=fault.headers, content=fault.content)
        answer = self.answer(json.loads(request.content))
        return answer if isinstance(answer, httpx.Response) else _ok(answer)


def install(patch: pytest.MonkeyPatch, answer: Answer) -> Service:
    """Let all connections end at one service."""
    service = Service(answer)
    patch.setattr(httpx, "Client", partial(httpx.Client, transport=httpx.MockTransport(service)))
    patch.setattr(connection.Connection, "answered", set())
    return service


def stop_clock(patch: pytest.MonkeyPatch) -> list[float]:
    """Let no connection wait; return the list of the seconds that each would have waited."""
    waits: list[float] = []
    patch.setattr(connection.tenacity, "sleep_using_event", lambda event: waits.append)
    return waits
