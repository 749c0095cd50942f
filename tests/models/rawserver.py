"""A server that sends any bytes in any rhythm: what no library for servers would send."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Behaviour = Callable[[socket.socket], None]


def reply(body: bytes, *, head: bytes = b"HTTP/1.1 200 OK\r\n") -> bytes:
    return head + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def _read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        if not (piece := connection.recv(65536)):
            return b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    sizes = [int(line.partition(b":")[2]) for line in head.split(b"\r\n")
             if line.lower().startswith(b"content-length:")]
    while sizes and len(body) < sizes[0]:
        if not (piece := connection.recv(65536)):
            return b""
        body += piece
    return head


@contextmanager
def raw_server(behave: Behaviour, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """Yield the address of a server that calls ``behave(connection)`` after each request that it has read."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            speaking = context.wrap_socket(connection, server_side=True) if context else connection
            while _read_request(speaking):
                behave(speaking)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def always(body: bytes) -> Behaviour:
    return lambda connection: connection.sendall(reply(body))
