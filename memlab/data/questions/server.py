"""The server of the questions page: loopback only, a free port, one short request at a time for each connection."""

from __future__ import annotations

import os
import sys
import webbrowser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from memlab.data.questions.site import MOST, PageReply, Site
from memlab.support.foreign import whole_number

ALWAYS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
          "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin"}
"""Headers of every answer."""


class PageServer(ThreadingHTTPServer):
    """A site on 127.0.0.1, on a port that was free."""

    daemon_threads = True

    def __init__(self, site: Site) -> None:
        self.site = site
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://127.0.0.1:{self.server_port}/{self.site.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a browser that closes a connection is no fault, and what fails is told to the page."""


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    timeout = 30  # seconds: whoever sends nothing for so long is left
    server_version, sys_version = "memlab", ""

    def do_GET(self) -> None:
        self._answer("GET", b"")

    def do_POST(self) -> None:
        length = whole_number(self.headers.get("Content-Length", ""))
        if length is None or length > MOST:
            self._send(PageReply(411 if length is None else 413))
            return
        self._answer("POST", self.rfile.read(length))

    def _answer(self, method: str, body: bytes) -> None:
        self._send(self.server.site.answer(method, self.path, self.headers.get("Host", ""), self.headers.get("Origin"),
                                           body))

    def _send(self, reply: PageReply) -> None:
        self.send_response(reply.status)
        for name, value in {**ALWAYS, **reply.headers, "Content-Length": str(len(reply.content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ARG002 (the name is the library's)
        """Print nothing for a request."""


def open_browser(url: str) -> bool:
    """Open a page in a browser with windows; return whether there is one. One of the terminal would take it over."""
    windows = sys.platform in ("darwin", "win32") or any(os.environ.get(n) for n in ("DISPLAY", "WAYLAND_DISPLAY"))
    return windows and webbrowser.open(url)
