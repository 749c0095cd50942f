"""memlab's encoder and chat model in the form of OpenAI's interface, on a socket of the file system.

``/v1/embeddings`` gives the vectors of the store, so that a peer needs no encoder of its own, no vector is computed
twice and "the same encoder" is exact. ``/v1/chat/completions`` asks the model of ``chat=``, through the store.
"""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from typing import Any

from memlab.models.protocols import Chat, Embedder, Floats, Message, Prompt, Role
from memlab.pipeline.tables import Notes, texts_frame
from memlab.store import Store


class PeerModels:
    """The models that peers may ask; the encoder named ``query`` is for questions, by any other name for passages."""

    def __init__(self, store: Store, embedder: Embedder, chat: Chat | None = None) -> None:
        self._store, self._embedder, self._chat = store, embedder, chat
        self._vectors: dict[tuple[Role, str], Floats] = {}
        self._lock = threading.Lock()

    def prepare(self, texts: Iterable[str]) -> None:
        """Have the vectors of passages ready, by the store, and the encoder loaded: peers wait for seconds only."""
        distinct = texts_frame(text for text in texts if ("document", text) not in self._vectors)
        any(self._embedder.encode(["loaded"], "document"))
        vectors = self._store.vectors(self._embedder, distinct, "document")
        self._vectors |= {("document", text): vector for text, vector in zip(distinct["text"], vectors)}

    def embeddings(self, body: dict[str, Any]) -> dict[str, Any]:
        """Answer a request for vectors, as numbers even where base64 is asked for, which clients accept.

        A text that was not prepared is encoded and not stored.
        """
        texts = [body["input"]] if isinstance(body["input"], str) else list(body["input"])
        role: Role = "query" if body.get("model") == "query" else "document"
        with self._lock:
            missing = list(dict.fromkeys(text for text in texts if (role, text) not in self._vectors))
            for rows, vectors in self._embedder.encode(missing, role) if missing else ():
                self._vectors |= {(role, missing[row]): vector for row, vector in zip(rows, vectors)}
        data = [{"object": "embedding", "index": index, "embedding": self._vectors[role, text].tolist()}
                for index, text in enumerate(texts)]
        return {"object": "list", "model": body.get("model"), "data": data, "usage": {"prompt_tokens": 0}}

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        """Answer a request for a reply of the chat model."""
        if self._chat is None:
            raise ValueError("no chat model was named (chat=...)")
        messages = tuple(Message(one["role"], one["content"]) for one in body["messages"])
        with self._lock:
            said, = self._store.completions(self._chat, [Prompt(messages, max_tokens=body.get("max_tokens"))], Notes())
        choice = {"index": 0, "finish_reason": said.finish, "message": {"role": "assistant", "content": said.answer}}
        return {"id": "0", "object": "chat.completion", "created": 0, "model": body.get("model"), "choices": [choice]}

    @contextmanager
    def served(self, folder: str) -> Iterator[None]:
        """Listen on the socket ``models`` of a folder within the block; what cannot be answered gets why (400)."""
        answers = {"/v1/embeddings": self.embeddings, "/v1/chat/completions": self.completion}

        class Request(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                try:
                    status, reply = 200, answers[self.path](json.loads(body))
                except Exception as error:  # the peer goes on, or fails by itself
                    status, reply = 400, {"error": {"message": f"{type(error).__name__}: {error}", "type": "memlab"}}
                content = json.dumps(reply).encode()
                with suppress(OSError):  # the peer has gone
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

            def log_request(self, code: Any = "", size: Any = "") -> None:
                """Say nothing."""

        with ModelSocket(f"{folder}/models", Request) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            try:
                yield
            finally:
                server.shutdown()


class ModelSocket(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """A server with a thread for each connection."""

    daemon_threads = True
