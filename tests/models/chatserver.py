"""A server of OpenAI's chat protocol on the loopback address, which can be slow, die and come back."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psutil

from memlab.models.serving.servers import Server, records_folder

Rule = Callable[[list[dict[str, str]]], str]
Gate = Callable[[int], bool]

GATE_SECONDS = 60.0
"""Longest time for which a gate holds a reply back, so that a test that fails does not hang."""


def echo(messages: list[dict[str, str]]) -> str:
    return f"You said: {messages[-1]['content']}"


class ChatServer:
    """Answers by a rule, and counts."""

    def __init__(self, rule: Rule = echo, *, key: str | None = None, delay: float = 0.0) -> None:
        self.rule, self.key, self.delay = rule, key, delay
        self.requests: list[dict[str, Any]] = []
        self.finish = "stop"
        self.message: dict[str, Any] = {}  # fields of the message beside or in place of the text
        self.gate: Gate | None = None  # holds the reply to the n-th request back until gate(n) is true
        self.die_after: int | None = None
        self.most = self._now = 0
        self.port = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        """Listen, on the same port as before if there was one."""
        ready = threading.Event()
        self.die_after = None

        async def serve() -> None:
            self._end = asyncio.Event()
            server = await asyncio.start_server(self._talk, "127.0.0.1", self.port, limit=2**24)
            self.port = server.sockets[0].getsockname()[1]
            ready.set()
            await self._end.wait()
            server.close()
            for writer in list(self._open):
                writer.transport.abort()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

        def run() -> None:
            self._loop = asyncio.new_event_loop()
            self._loop.run_until_complete(serve())
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.close()

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        assert ready.wait(60)

    def stop(self) -> None:
        """Die: every connection is cut."""
        if self._thread.is_alive():
            assert self._loop is not None
            self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(60)

    def wait_until_left(self) -> None:
        """Return when every connection is closed by the client, so that no further request can come in."""
        end = time.monotonic() + GATE_SECONDS
        while self._open:
            assert time.monotonic() < end, "a connection is still open"
            time.sleep(0.01)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while line := await reader.readline():
                headers = {}
                while (header := (await reader.readline()).strip()):
                    name, _, value = header.decode().partition(":")
                    headers[name.lower()] = value.strip()
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                if not await self._answer(line.decode(), headers, body, writer):
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            self._open.discard(writer)
            writer.close()

    async def _answer(self, line: str, headers: dict[str, str], body: bytes, writer: asyncio.StreamWriter) -> bool:
        if line.startswith("GET"):
            return await _send(writer, 200, {"object": "list", "data": [{"id": "tiny", "object": "model"}]})
        given = headers.get("authorization", "")
        if self.key is not None and given != f"Bearer {self.key}":
            return await _send(writer, 401, _error(f"no access with {given}"))
        request = json.loads(body)
        self.requests.append(request)
        if self.die_after is not None and len(self.requests) >= self.die_after:
            self._end.set()
            return False
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            await self._wait_at_gate(len(self.requests))
            await asyncio.sleep(self.delay)
            return await _send(writer, 200, self._reply(request))
        finally:
            self._now -= 1

    async def _wait_at_gate(self, number: int) -> None:
        end = time.monotonic() + GATE_SECONDS
        while self.gate is not None and not self.gate(number) and time.monotonic() < end:
            await asyncio.sleep(0.002)

    def _reply(self, request: dict[str, Any]) -> dict[str, Any]:
        words = sum(len((m.get("content") or "").split()) for m in request["messages"])  # none beside calls of tools
        text = self.rule(request["messages"])
        return {"id": "x", "object": "chat.completion", "created": 0, "model": request["model"],
                "choices": [{"index": 0, "finish_reason": self.finish,
                             "message": {"role": "assistant", "content": text, **self.message}}],
                "usage": {"prompt_tokens": words, "completion_tokens": len(text.split()), "total_tokens": 0}}


def _error(text: str) -> dict[str, Any]:
    return {"error": {"message": text, "type": "test", "code": None}}


async def _send(writer: asyncio.StreamWriter, status: int, body: dict[str, Any]) -> bool:
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
    await writer.drain()
    return True


@contextmanager
def serving(rule: Rule = echo, *, key: str | None = None, delay: float = 0.0) -> Iterator[ChatServer]:
    server = ChatServer(rule, key=key, delay=delay)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def publish(url: str, **fields: Any) -> Server:
    """Leave the record of a chat server that this very process is."""
    records_folder()
    known: dict[str, Any] = {"name": "tiny", "model": "tiny", "url": url, "key": "a key of ours", "pid": os.getpid(),
                             "create_time": psutil.Process().create_time(), "host": socket.gethostname(), "log": "log",
                             "started": "2024-01-01T00:00:00+00:00", "command": (), "task": "chat"}
    server = Server(**known | fields)
    server.save()
    return server
