"""Stands in for vLLM: a real process that takes its command line, listens, and can fail as vLLM does.

``FAKE_VLLM`` says how: "chat", "score" or "embeddings" serve that; "late" serves chat after a while of 503;
"template" refuses chat as a server without a chat template does; "memory" and "port" die while starting;
"silent" never listens; "mortal" serves chat and dies two seconds after its first answer; "family" serves chat and has
a child that does not end when asked. Its command line and its variables are written to FAKE_VLLM_SAID.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODE = os.environ.get("FAKE_VLLM", "chat")
STARTED = time.monotonic()
ANSWERS: dict[str, Any] = {
    "/v1/chat/completions": {"choices": [{"message": {"role": "assistant", "content": "Hello!"}}]},
    "/v1/embeddings": {"data": [{"embedding": [0.0] * 384}]},
    "/v1/score": {"data": [{"score": 0.5}]},
}
PATH = {"score": "/v1/score", "embeddings": "/v1/embeddings"}.get(MODE, "/v1/chat/completions")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/health":
            self.reply(200, {})
        else:
            self.reply(200, {"data": [{"id": "model", "max_model_len": 4096}]})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        if self.headers["authorization"] != f"Bearer {os.environ['VLLM_API_KEY']}":
            self.reply(401, {"error": "Unauthorized"})
        elif MODE == "late" and time.monotonic() - STARTED < 1:
            self.reply(503, {"error": "loading"})
        elif MODE == "template":
            self.reply(400, {"error": "you must provide a chat template"})
        elif self.path == PATH:
            self.reply(200, ANSWERS[self.path])
            if MODE == "mortal":
                threading.Timer(2, lambda: die("RuntimeError: a worker died")).start()
        else:
            self.reply(404, {"error": "Not Found"})

    def reply(self, status: int, body: dict[str, Any]) -> None:
        said = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: object) -> None:
        pass


def die(*lines: str) -> None:
    for line in lines:
        print(f"(EngineCore pid=7) ERROR 11-22 02:21:10 [core.py:133] {line}", flush=True)
    os._exit(1)


def main() -> None:
    print("(APIServer pid=7) INFO 11-22 02:21:10 [entry.py:1] starting", flush=True)
    said = os.environ.get("FAKE_VLLM_SAID")
    if said:
        with open(said, "w") as handle:
            json.dump({"line": sys.argv, "variables": dict(os.environ)}, handle)
    if MODE == "memory":
        die("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
            "RuntimeError: Engine core initialization failed. See root cause above.")
    if MODE == "port":
        die("OSError: [Errno 98] Address already in use")
    if MODE == "silent":
        time.sleep(600)
    if MODE == "family":
        stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        child = subprocess.Popen([sys.executable, "-c", stubborn])
        print(f"child {child.pid}", flush=True)
    port = int(sys.argv[sys.argv.index("--port") + 1])
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main()
