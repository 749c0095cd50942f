"""A service on the loopback address that can fail in every way a real one does."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

DIM = 6


def text_vector(text: str) -> list[float]:
    """A deterministic vector, not of unit length."""
    return [b / 255 - 0.5 for b in hashlib.blake2b(text.encode(), digest_size=DIM).digest()]


def unit(texts: list[str]) -> np.ndarray:
    vectors = np.array([text_vector(t) for t in texts])
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def relevance(query: str, document: str) -> float:
    return text_vector(query + "|" + document)[0]


class Loopback:
    """What the service was asked, and how it is to misbehave: one fault a request, in order, then none."""

    def __init__(self) -> None:
        self.url, self.bodies, self.headers, self.times, self.paths = "", [], [], [], []
        self.away = 0  # how many more requests are answered by 503
        self.faults: list[str] = []
        self.lock = threading.Lock()

    def is_away(self) -> bool:
        with self.lock:
            self.away -= 1 if self.away else 0
            return bool(self.away)

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if path.endswith("/embeddings"):
            data = [{"index": i, "embedding": text_vector(t)} for i, t in enumerate(body["input"])]
            return {"data": data[::-1], "usage": {"total_tokens": 1}}
        query = body["query"]
        results = [{"index": i, "relevance_score": relevance(query, d)} for i, d in enumerate(body["documents"])]
        return {"results": sorted(results, key=lambda r: -r["relevance_score"])}


@contextmanager
def serving() -> Iterator[Loopback]:
    world = Loopback()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(503 if world.is_away() else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with world.lock:
                world.bodies.append(body)
                world.paths.append(self.path)
                world.headers.append(dict(self.headers))
                world.times.append(time.monotonic())
                fault = world.faults.pop(0) if world.faults else ""
            if world.is_away():
                fault = "503"
            status, extra = 200, {}
            reply = world.answer(self.path.partition("?")[0], body)
            items = reply.get("data") or reply["results"]
            field = "embedding" if "data" in reply else "relevance_score"
            if fault == "429":
                status, extra = 429, {"Retry-After": "0.2"}
            elif fault == "slow":
                time.sleep(3)
            elif fault == "few":
                items.pop()
            elif fault == "twice":
                items[0]["index"] = items[-1]["index"]
            elif fault == "short":
                for item in items:
                    item[field] = item[field][:-1]
            elif fault == "nan":
                items[0][field] = [float("nan")] * DIM if field == "embedding" else float("nan")
            elif fault == "null":
                items[0][field] = [None] * DIM if field == "embedding" else None
            elif fault == "form":
                reply = {"object": "list"}
            elif fault.isdigit():
                status = int(fault)
            raw = json.dumps(reply if status == 200 else {"error": f"refused {self.headers['Authorization']}"}).encode()
            if fault == "not json":
                raw = b"<html>busy</html>"
            self.send_response(status)
            for name, value in extra.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw[: len(raw) // 2] if fault == "cut off" else raw)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    world.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield world
    finally:
        server.shutdown()
        server.server_close()
