"""Stands in for vLLM: a real process that takes its command line, listens, and can fail as vLLM does.

``FAKE_VLLM`` says how: "chat", "score" or "embeddings" serve that; "late" serves chat after a while of 503;
"template" refuses chat as a server without a chat template does; "memory" and "port" die while starting;
"silent" never listens; "mortal" serves chat and dies two seconds after its first answer; "family" serves chat and has
a child that does not end when asked. Its command line and its variables are written to FAKE_VLLM_SAID. In chat it
repeats what was said last, FAKE_VLLM_DELAY seconds later, and notes that in the folder FAKE_VLLM_ASKED, in a file a
server (host-port.jsonl).
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MODE = os.environ.get("FAKE_VLLM", "chat")
STARTED = time.monotonic()
ANSWERS: dict[str, Any] = {
    "/v1/embeddings": {"data": [{"embedding": [0.0] * 384}]},
    "/v1/score": {"data": [{"score": 0.5}]},
}
WORDS = sys.argv[1:]
PATH = {"score": "/v1/score", "embeddings": "/v1/embeddings"}.get(MODE, "/v1/chat/completions")


def option(name: str) -> str:
    return WORDS[WORDS.index(name) + 1]


def names() -> list[str]:
    after = WORDS[WORDS.index("--served-model-name") + 1:]
    return after[:next((i for i, word in enumerate(after) if word.startswith("-")), len(after))]


def said(request: dict[str, Any]) -> str:
    """What was said last, and noted, with the host as SLURM calls it: virtual nodes share one."""
    text = str((request["messages"] or [{"content": "nothing"}])[-1]["content"])
    folder = os.environ.get("FAKE_VLLM_ASKED")
    if folder:
        host = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
        with (Path(folder) / f"{host}-{option('--port')}.jsonl").open("a") as notes:
            notes.write(json.dumps(text) + "\n")
    return text


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        if self.path == "/health":
            self.reply(200, {})
        else:
            self.reply(200, {"object": "list", "data": [{"id": name, "object": "model", "max_model_len": 4096}
                                                        for name in names()]})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers["authorization"] != f"Bearer {os.environ['VLLM_API_KEY']}":
            self.reply(401, {"error": "Unauthorized"})
        elif MODE == "late" and time.monotonic() - STARTED < 1:
            self.reply(503, {"error": "loading"})
        elif MODE == "template":
            self.reply(400, {"error": "you must provide a chat template"})
        elif self.path == PATH:
            self.reply(200, ANSWERS.get(self.path) or self.chat(request))
            if MODE == "mortal":
                threading.Timer(2, lambda: die("RuntimeError: a worker died")).start()
        else:
            self.reply(404, {"error": "Not Found"})

    def chat(self, request: dict[str, Any]) -> dict[str, Any]:
        time.sleep(float(os.environ.get("FAKE_VLLM_DELAY") or 0))
        text = said(request)
        message = {"index": 0, "finish_reason": "stop",
                   "message": {"role": "assistant", "content": f"You said: {text}"}}
        tokens = {"prompt_tokens": len(text.split()), "completion_tokens": 2 + len(text.split())}
        return {"id": "x", "object": "chat.completion", "model": request["model"], "choices": [message],
                "usage": tokens}

    def reply(self, status: int, body: dict[str, Any]) -> None:
        said = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128


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
    Server((option("--host"), int(option("--port"))), Handler).serve_forever()


if __name__ == "__main__":
    main()
