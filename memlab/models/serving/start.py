"""Life cycle of one server: start, wait until it answers a real request, record, watch, end.

/health also answers for models that crash at the first request, so a server is ready when it has answered one.
"""

from __future__ import annotations

import os
import secrets
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import psutil

from memlab.models.serving import environment, process, servers
from memlab.models.serving.settings import Runner, Settings
from memlab.models.serving.vllm_command import Plan, check_room, is_folder, outer_variables
from memlab.support.errors import MemlabError
from memlab.support.progress import clock
from memlab.support.shell import setting

_CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 4, "temperature": 0}
PROBES: dict[Runner, dict[str, tuple[str, dict[str, Any], str]]] = {
    "generate": {"chat": ("/chat/completions", _CHAT, "choices")},
    "pooling": {"embeddings": ("/embeddings", {"input": ["hello"]}, "data"),
                "score": ("/score", {"text_1": "hello", "text_2": "hello"}, "data")},
}
"""Runner -> task -> (path, request, a field of every valid answer)."""

_BETWEEN = 0.5  # seconds between two requests to a server that does not listen yet
_ANSWER = 300.0  # seconds for the first answer: a CPU may compile for minutes

KEY_VARIABLE = "MEMLAB_SERVING_KEY"
"""The variable with the key of a served encoder or reranker, for runs."""

GRACE = 15.0
"""Seconds from SIGTERM to SIGKILL: vLLM ends in one or two, and in a few more on many GPUs."""

_SHOW_EVERY = 10.0  # seconds between two lines of progress


def wait_until_ready(server: subprocess.Popen[bytes], url: str, key: str, model: str, runner: Runner, log: Path, *,
                     timeout: float, show: Callable[[str], None]) -> dict[str, Any]:
    """Return what is known of a server once it has answered a real request; show the seconds and its log meanwhile.

    The result has the fields of its record: task, dimensions, window.

    Raises MemlabError if the server ends, refuses every kind of request, or is not ready within ``timeout`` seconds.
    """
    start, due = time.monotonic(), _SHOW_EVERY
    with httpx.Client(headers={"Authorization": f"Bearer {key}"}, timeout=httpx.Timeout(_ANSWER, connect=5),
                      trust_env=False) as client:  # the environment's proxy does not lead to this machine itself
        while True:
            if (status := server.poll()) is not None:
                raise process.death(status, log)
            elapsed = time.monotonic() - start
            if elapsed > timeout:
                raise MemlabError(f"not ready after {clock(elapsed)}{process.last_lines(log)}\n", where=str(log),
                                  fix="--timeout SECONDS")
            if ready := _ask(client, url, model, runner, timeout - elapsed):
                return ready
            if elapsed >= due:
                due += _SHOW_EVERY
                show(f"{clock(elapsed)}, {next(reversed(process.tail(log, 4000)), '').strip()}"[:100])
            time.sleep(_BETWEEN)


def _ask(client: httpx.Client, url: str, model: str, runner: Runner, remaining: float) -> dict[str, Any] | None:
    """Send the requests that prove readiness; return None if the server does not answer yet."""
    refusals = []
    for task, (path, request, field) in PROBES[runner].items():
        try:
            reply = client.post(url + path, json={"model": model, **request},
                                timeout=httpx.Timeout(min(_ANSWER, max(remaining, 1.0)), connect=5))
        except httpx.TransportError:
            return None
        if reply.status_code == 503:  # up, and still loading
            return None
        if reply.status_code == 200 and _field(reply, field):
            length = len(_field(reply, "data", 0, "embedding")) if task == "embeddings" else None
            return {"task": task, "dimensions": length, "window": _window(client, url)}
        refusals.append(f"{path}: status {reply.status_code}, {reply.text[:200]}")
    raise MemlabError("the server is up but answers no request: " + "; ".join(refusals), where=url,
                      fix="a chat model needs a chat template; encoders and rerankers need --runner pooling")


def _window(client: httpx.Client, url: str) -> int | None:
    """Return the maximum tokens of prompt and reply together; None if the server does not report it."""
    with suppress(httpx.TransportError, ValueError, TypeError, OverflowError):
        return int(_field(client.get(url + "/models"), "data", 0, "max_model_len"))
    return None


def _field(reply: httpx.Response, *path: str | int) -> Any:
    """Return a field of a JSON reply; None if there is no such field, or the reply is not JSON."""
    try:
        value = reply.json()
        for key in path:
            value = value[key]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return value


def start(plan: Plan, *, port: int, timeout: float,
          echo: Callable[[str], None]) -> tuple[servers.Server, subprocess.Popen[bytes] | None]:
    """Return a server that answers, and its process if it was started here.

    A running server with the same command is returned, unless a port is given or the server belongs to another SLURM
    job, which may end at any time and has its own GPUs.
    """
    job, restart = servers.slurm_job()
    for other in servers.running_servers():
        if job is not None and other.job == job and other.restart < restart:
            other.remove()  # from this job before it was requeued
        elif (port == 0 and other.is_local and other.task and other.job == job
              and other.command == plan.record(other.port)):
            echo(f"{plan.name} is already served")
            return other, None
    if plan.device == "gpu":
        check_room(plan.settings, plan.gpus)
    port = process.free_port(port, plan.address.listen)
    key = secrets.token_urlsafe(32)
    log = servers.records_folder() / f"{servers.file_stem(plan.name, servers.node_name(), port)}.log"
    echo(f"starting {plan.name} on {plan.device}: {shlex.join(plan.record(port))}")
    begin = time.monotonic()
    variables = outer_variables(os.environ) | plan.variables() | {"VLLM_API_KEY": key}
    leader = process.launch(plan.line(port), variables, log)
    server: servers.Server | None = None
    try:
        server = servers.Server(plan.name, plan.names[0], servers.base_url(plan.address.connect, port), key, leader.pid,
                                psutil.Process(leader.pid).create_time(), servers.node_name(), str(log),
                                datetime.now(UTC).isoformat(timespec="seconds"), plan.record(port), names=plan.names,
                                shared=plan.address.shared, job=job, restart=restart)
        server.save()  # before it is ready, so that `stop` always finds it
        answer = wait_until_ready(leader, server.url, key, server.model, plan.settings.runner, log,
                                   timeout=timeout, show=lambda text: echo(f"{plan.name}: {text}"))
        revision, folder = _revision_and_folder(plan.settings)
        server = replace(server, revision=revision, folder=folder, **answer)
        server.save()
        echo(f"{plan.name} answered its first request after {clock(time.monotonic() - begin)}")
    except BaseException:
        process.end(leader.pid, GRACE)
        if server is not None:
            server.remove()
        raise
    return server, leader


def watch(server: servers.Server, leader: subprocess.Popen[bytes], grace: float) -> None:
    """Return when the server was asked to end; raise MemlabError if it died by itself."""
    status = leader.wait()
    if status in {0, -signal.SIGTERM}:
        end(server, grace)
        return
    process.end(leader.pid, grace)  # its remaining processes; its log is kept
    server.remove()
    raise process.death(status, Path(server.log))


def end(server: servers.Server, grace: float) -> None:
    """End a server, and remove its record and its log."""
    process.end(server.pid, grace)
    server.remove()
    Path(server.log).unlink(missing_ok=True)


def overrides(server: servers.Server) -> str:
    """Return the overrides with which a run uses a server, quoted for the shell."""
    if server.model == environment.embedded_folder().name:
        return f"chat=embedded chat.url={server.url}"
    slot, form = {"chat": ("chat", "server"), "embeddings": ("embedder", "openai"),
                  "score": ("cross_encoder", "http_rerank")}[server.task]
    fields: dict[str, object] = {"model": server.model, "url": server.url}
    if server.task == "chat":
        fields |= {"window": server.window, "revision": server.revision, "tokenizer": server.folder}
    else:
        fields |= {"key_env": KEY_VARIABLE, "dimensions": server.dimensions}
    if server.task == "embeddings":
        fields["ask_dimensions"] = False
    return " ".join([f"{slot}={form}", *(
        setting(f"{slot}.{name}", value) if isinstance(value, str) else f"{slot}.{name}={str(value).lower()}"
        for name, value in fields.items() if value is not None)])


def _revision_and_folder(settings: Settings) -> tuple[str | None, str | None]:
    """Return the revision of a model's weights and the folder of its files.

    The revision is the commit of a hub model, and what vLLM quantises the weights to: other bits give other replies.
    """
    if is_folder(settings.model):
        return settings.quantization, settings.model
    from huggingface_hub.constants import HF_HUB_CACHE

    cache = Path(HF_HUB_CACHE) / f"models--{settings.model.replace('/', '--')}"
    ref = cache / "refs" / (settings.revision or "main")
    commit = ref.read_text().strip() if ref.is_file() else settings.revision
    folder = cache / "snapshots" / (commit or "-")
    revision = "@".join(filter(None, [commit, settings.quantization])) or None
    return revision, str(folder) if folder.is_dir() else None
