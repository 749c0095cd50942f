"""A server of OpenAI's chat protocol on the loopback address that can fail in every way a real one does."""

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

from memlab.servers import Server, records_folder

Rule = Callable[[list[dict[str, str]]], str]
Gate = Callable[[int], bool]

GATE_SECONDS = 60.0
"""Longest time for which a gate holds a reply back, so that a test that fails does not hang."""


def echo(messages: list[dict[str, str]]) -> str:
    return f"You said: {messages[-1]['content']}"


class ChatServer:
    """Answers by a rule, and counts; ``faults`` are one a request, in order, then none.

    Faults: "429" (with Retry-After 0.2), any other status, "hang", "cut" (half a reply), "drop" (no reply),
    "page" (HTML), "no json", "form" (JSON of another form), "empty" (content null), "length", and "400:TEXT".
    """

    def __init__(self, rule: Rule = echo, *, key: str | None = None, delay: float = 0.0) -> None:
        self.rule, self.key, self.delay = rule, key, delay
        self.faults: list[str] = []
        self.requests: list[dict[str, Any]] = []
        self.times: list[float] = []
        self.keys: list[str] = []  # the header of each request that holds its key; "" for none
        self.probes = self.away = 0  # GETs so far, and how many more of them are answered by 503
        self.takes_schemas = True
        self.refuses: Callable[[dict[str, Any]], tuple[int, Any] | None] = lambda _: None  # (status, body) of an error
        self.finish = "stop"
        self.message: dict[str, Any] = {}  # fields of the message beside or in place of the text
        self.logprobs = False  # gives -0.5 for every word, where asked
        self.mute = False  # takes requests and says nothing, as a node that lost its power
        self.gate: Gate | None = None  # holds the reply to the n-th request back until gate(n) is true
        self.window: int | None = None
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
        if self.mute:
            await asyncio.sleep(3600)
        if line.startswith("GET"):
            self.probes += 1
            self.away -= self.away > 0
            if self.away:
                return await _send(writer, 503, _error("away"))
            return await _send(writer, 200, {"object": "list", "data": [{"id": "tiny", "object": "model"}]})
        given = headers.get("authorization", "")
        if self.key is not None and given != f"Bearer {self.key}":
            return await _send(writer, 401, _error(f"no access with {given}"))
        request = json.loads(body)
        self.requests.append(request)
        self.keys.append(given)
        self.times.append(time.monotonic())
        if self.die_after is not None and len(self.requests) >= self.die_after:
            self._end.set()
            return False
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            await self._wait_at_gate(len(self.requests))
            return await self._fulfil(request, writer)
        finally:
            self._now -= 1

    async def _wait_at_gate(self, number: int) -> None:
        end = time.monotonic() + GATE_SECONDS
        while self.gate is not None and not self.gate(number) and time.monotonic() < end:
            await asyncio.sleep(0.002)

    async def _fulfil(self, request: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        fault = self.faults.pop(0) if self.faults else ""
        await asyncio.sleep(3600 if fault == "hang" else self.delay)
        if "response_format" in request and not self.takes_schemas:
            return await _send(writer, 400, _error("response_format.type 'json_schema' is not supported"))
        words = sum(len((m.get("content") or "").split()) for m in request["messages"])  # none beside calls of tools
        if error := self.refuses(request):
            return await _send(writer, error[0], json.dumps(error[1]).encode())
        if self.window is not None and words + request["max_tokens"] > self.window:
            return await _send(writer, 400, _error(f"This model's maximum context length is {self.window} tokens."))
        if fault.startswith("400:"):
            return await _send(writer, 400, _error(fault[4:]))
        if fault.isdigit():
            extra = "Retry-After: 0.2\r\n" if fault == "429" else ""
            return await _send(writer, int(fault), _error("not now"), extra=extra)
        if fault == "drop":
            return False
        if fault in ("page", "no json"):
            kind = "text/html" if fault == "page" else "application/json"
            return await _send(writer, 200, b"<html>busy</html>", kind=kind)
        text = self.rule(request["messages"])
        reply: Any = {
            "id": "x", "object": "chat.completion", "created": 0, "model": request["model"],
            "choices": [{"index": 0, "finish_reason": "length" if fault == "length" else self.finish,
                         "message": {"role": "assistant", "content": None if fault == "empty" else text,
                                     **self.message}}],
            "usage": {"prompt_tokens": words, "completion_tokens": len(text.split()), "total_tokens": 0}}
        if self.logprobs and request.get("logprobs"):
            reply["choices"][0]["logprobs"] = {"content": [{"token": w, "logprob": -0.5} for w in text.split()]}
        return await _send(writer, 200, {"object": "list"} if fault == "form" else reply, cut=fault == "cut")


def _error(text: str) -> dict[str, Any]:
    return {"error": {"message": text, "type": "test", "code": None}}


async def _send(writer: asyncio.StreamWriter, status: int, body: dict[str, Any] | bytes, *, extra: str = "",
                kind: str = "application/json", cut: bool = False) -> bool:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n{extra}\r\n"
    writer.write(head.encode() + (data[: len(data) // 2] if cut else data))
    await writer.drain()
    return not cut


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
