"""Replies without end, and packed ones, from a server of embeddings and from a chat server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from memlab.errors import MemlabError
from memlab.models.chat.openai import OpenAIChat
from memlab.models.chat.protocol import Message, Prompt
from memlab.models.http import reply_limit
from memlab.models.http.client import Service


class Endless(BaseHTTPRequestHandler):
    sent = 0
    packed = False

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        if Endless.packed:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        try:
            for _ in range(500):
                self.wfile.write(b" " * 100_000)
                Endless.sent += 100_000
        except OSError:
            pass

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(reply_limit, "MOST_BYTES", 1_000_000)
    Endless.sent, Endless.packed = 0, False
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endless)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def ask(kind: str, url: str) -> Any:
    if kind == "embeddings":
        with Service(url, None, retries=0, timeout=5.0, requests_per_minute=None) as service:
            return service.post({"input": ["a"]})
    return list(OpenAIChat(model="tiny", url=url, patience=1.0, retries=0).complete(
        [Prompt((Message("user", "Hi"),))]))


@pytest.mark.parametrize("kind", ["embeddings", "chat"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_reply_is_read_up_to_the_limit(kind: str, packed: bool, url: str) -> None:
    Endless.packed = packed
    with pytest.raises(MemlabError, match="the reply is packed" if packed else "the reply has more than 1 MB"):
        ask(kind, url)
    assert Endless.sent < 20_000_000
