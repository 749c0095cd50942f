"""Life cycle of one server: start, wait until it answers, record, watch, end."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psutil

from memlab.runtime.progress import clock
from memlab.servers import node, records
from memlab.servers.records import Server
from memlab.serving import bundled, process, ready
from memlab.serving.plan import Plan, check_room, is_folder, outer_variables
from memlab.serving.settings import Settings

KEY_VARIABLE = "MEMLAB_SERVING_KEY"
"""The variable with the key of a served encoder or reranker, for runs."""

GRACE = 15.0
"""Seconds from SIGTERM to SIGKILL: vLLM ends in one or two, and in a few more on many GPUs."""

_SHOW_EVERY = 10.0  # seconds between two lines of progress


def start(plan: Plan, *, port: int, timeout: float,
          echo: Callable[[str], None]) -> tuple[Server, subprocess.Popen[bytes] | None]:
    """Return a server that answers, and its process if it was started here.

    A running server with the same command is returned, unless a port is given or the server belongs to another SLURM
    job, which may end at any time and has its own GPUs.
    """
    job, restart = node.job()
    for other in records.servers():
        if job is not None and other.job == job and other.restart < restart:
            other.remove()  # from this job before it was requeued
        elif (port == 0 and other.is_local and other.task and other.job == job
              and other.command == plan.record(other.port)):
            echo(f"{plan.name} is already served")
            return other, None
    check_room(plan.settings, plan.device, plan.gpus)
    port = process.free_port(port, plan.address.listen)
    key = secrets.token_urlsafe(32)
    log = records.folder() / f"{records.file_stem(plan.name, node.name(), port)}.log"
    echo(f"starting {plan.name} on {plan.device}: {shlex.join(plan.record(port))}")
    if memory := plan.memory():
        echo(f"{plan.name} {memory}")
    begin = time.monotonic()
    variables = outer_variables(os.environ) | plan.variables() | {"VLLM_API_KEY": key}
    leader = process.launch(plan.line(port), variables, log)
    server: Server | None = None
    try:
        server = Server(plan.name, plan.names[0], node.url(plan.address.connect, port), key, leader.pid,
                        psutil.Process(leader.pid).create_time(), node.name(), str(log),
                        datetime.now(UTC).isoformat(timespec="seconds"), plan.record(port), names=plan.names,
                        shared=plan.address.shared, job=job, restart=restart)
        server.save()  # before it is ready, so that `stop` always finds it
        answer = ready.wait(leader, server.url, key, server.model, plan.settings.runner, log,
                            timeout=timeout, show=_progress(plan.name, echo))
        revision, folder = _revision_and_folder(plan.settings)
        server = replace(server, task=answer.task, dimensions=answer.dimensions, window=answer.window,
                         revision=revision, folder=folder)
        server.save()
        echo(f"{plan.name} answered its first request after {clock(time.monotonic() - begin)}")
    except BaseException:
        process.end(leader.pid, GRACE)
        if server is not None:
            server.remove()
        raise
    return server, leader


def watch(server: Server, leader: subprocess.Popen[bytes], grace: float) -> None:
    """Return when the server was asked to end; raise MemlabError if it died by itself."""
    status = leader.wait()
    if status in {0, -signal.SIGTERM}:
        end(server, grace)
        return
    process.end(leader.pid, grace)  # its remaining processes; its log is kept
    server.remove()
    raise process.death(status, Path(server.log))


def end(server: Server, grace: float) -> None:
    """End a server, and remove its record and its log."""
    process.end(server.pid, grace)
    server.remove()
    Path(server.log).unlink(missing_ok=True)


def overrides(server: Server) -> str:
    """Return the overrides with which a run uses a server, quoted for the shell."""
    if server.model == bundled.embedded_folder().name:
        return f"chat=embedded chat.url={server.url}"
    slot, form = {"chat": ("chat", "server"), "embeddings": ("embedder", "openai"),
                  "score": ("cross_encoder", "http_rerank")}[server.task]
    fields: dict[str, object] = {"model": server.model, "url": server.url}
    if server.task == "chat":
        fields |= {"window": server.window, "revision": server.revision, "tokenizer": server.folder}
    else:
        fields |= {"key_env": KEY_VARIABLE, "dimensions": server.dimensions}
    if server.task == "embeddings":
        fields["ask_dimensions"] = "false"
    return " ".join([f"{slot}={form}", *(_override(f"{slot}.{k}", str(v)) for k, v in fields.items() if v is not None)])


def _override(name: str, value: str) -> str:
    """Return one override for a shell; a value with special characters of Hydra's grammar is quoted.

    >>> print(_override("chat.model", "Qwen/Qwen2.5-7B"), _override("chat.tokenizer", "/my models/a"))
    chat.model=Qwen/Qwen2.5-7B 'chat.tokenizer="/my models/a"'
    """
    if re.fullmatch(r"[\w./:@-]+", value):
        return f"{name}={value}"
    inner = value.replace("\\", "\\\\").replace('"', '\\"')
    return shlex.quote(f'{name}="{inner}"')


def _progress(name: str, echo: Callable[[str], None]) -> Callable[[float, str], None]:
    """Return a function of (seconds, last line of the log) that prints both every ten seconds."""
    due = _SHOW_EVERY

    def show(seconds: float, last: str) -> None:
        nonlocal due
        if seconds >= due:
            due += _SHOW_EVERY
            echo(f"{name}: {clock(seconds)}, {last.strip()}"[:110])

    return show


def _revision_and_folder(settings: Settings) -> tuple[str | None, str | None]:
    """Return the commit of a hub model and the folder of its files in the hub's cache; of a local folder only that."""
    if is_folder(settings.model):
        return None, settings.model
    from huggingface_hub.constants import HF_HUB_CACHE

    cache = Path(HF_HUB_CACHE) / f"models--{settings.model.replace('/', '--')}"
    ref = cache / "refs" / (settings.revision or "main")
    commit = ref.read_text().strip() if ref.is_file() else settings.revision
    folder = cache / "snapshots" / (commit or "-")
    return commit, str(folder) if folder.is_dir() else None
