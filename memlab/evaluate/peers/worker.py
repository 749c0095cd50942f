"""The process of a peer: ``python worker.py ADAPTER SOCKET`` answers lines of JSON by lines of JSON.

It runs with the peer's own Python, and needs the standard library alone. Standard output belongs to the answers: what a
library prints goes to standard error. A port of the loopback address leads to memlab's models, which listen on a socket
of the file system, so that the process needs no network. An adapter imports ``embed``, ``wait`` and ``adapter_class``
from here by the name ``memlab_peer``.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import runpy
import socket
import struct
import sys
import threading
import traceback
import urllib.request
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

wait = asyncio.new_event_loop().run_until_complete
"""Return the result of a coroutine, for packages that are asynchronous; all run in one loop."""

BRING_UP, UP_AND_RUNNING = 0x8914, 0x41  # SIOCSIFFLAGS; IFF_UP | IFF_RUNNING


def forward(path: str) -> str:
    """Let a free port of the loopback address lead to a socket of the file system; return its URL.

    The address is switched on first: it is off in a network of one's own.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one, suppress(OSError):
        fcntl.ioctl(one, BRING_UP, struct.pack("16sh", b"lo", UP_AND_RUNNING))
    server = socket.create_server(("127.0.0.1", 0))

    def pump(source: socket.socket, goal: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                goal.sendall(data)
            goal.shutdown(socket.SHUT_WR)

    def accept() -> None:
        while True:
            near, far = server.accept()[0], socket.socket(socket.AF_UNIX)
            far.connect(path)
            for ends in ((near, far), (far, near)):
                threading.Thread(target=pump, args=ends, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return f"http://127.0.0.1:{server.getsockname()[1]}/v1"


def embed(texts: Iterable[str]) -> list[list[float]]:
    """Return memlab's vectors of texts, for packages that take a function."""
    body = json.dumps({"input": list(texts)}).encode()
    with urllib.request.urlopen(f"{os.environ['OPENAI_BASE_URL']}/embeddings", body) as reply:  # noqa: S310 (loopback)
        return [one["embedding"] for one in json.load(reply)["data"]]


def adapter_class(peer: str) -> Any:
    """Return the class of a peer beside this one, or of a folder, that has the methods ``add`` and ``search``."""
    names = runpy.run_path(str(Path(sys.argv[1]).parents[1] / peer / "adapter.py"), run_name="adapter")
    found = [value for value in names.values() if isinstance(value, type) and value.__module__ == "adapter"
             and hasattr(value, "add") and hasattr(value, "search")]
    if not found:
        raise TypeError("there is no class with the methods add(self, turns) and search(self, query, k, now)")
    return found[-1]  # a base class that has a name comes before it


def main(path: str, models: str) -> None:
    """Answer until standard input ends: ``load``, ``open``, ``add``, ``ready``, ``search`` and ``close``."""
    requests, answers = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    url = os.environ["OPENAI_BASE_URL"] = forward(models)
    sys.modules["memlab_peer"] = sys.modules[__name__]
    adapter = memory = cast(Any, None)
    for line in requests:
        do, *given = json.loads(line)
        value: Any = None
        try:
            if do == "load":
                adapter = adapter_class(os.path.dirname(path))
            elif do == "open":
                memory = adapter(*given, url)
            elif do == "search":
                value = [list(memory.search(query, given[1], now)) for query, now in given[0]]
            elif hasattr(memory, do):  # ready and close are for those who need them
                getattr(memory, do)(*given)
            reply = {"value": value}
        except BaseException as error:  # a library may try to end the process
            frames = traceback.extract_tb(error.__traceback__)
            at = next((frame for frame in reversed(frames) if frame.filename == path), frames[-1])
            reply = {"error": f"{type(error).__name__}: {error} ({at.filename}, line {at.lineno})"}
        answers.write(json.dumps(reply, default=str) + "\n")
        answers.flush()
    os._exit(0)  # threads of a library must not keep the process


if __name__ == "__main__":
    main(*sys.argv[1:])
