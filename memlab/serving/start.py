"""One server from its plan to its end: start, wait until it answers, record it, watch it, end it."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from memlab.runtime.progress import clock
from memlab.serving import command, node, packaged, process, ready, records
from memlab.serving.environment import Device
from memlab.serving.records import Server
from memlab.serving.settings import Settings

KEY_VARIABLE = "MEMLAB_SERVING_KEY"
"""Where runs look for the key of a served encoder or reranker."""

GRACE = 15.0
"""Seconds between asking a server to end and killing it: vLLM takes one or two, on many GPUs a few more."""

_SHOW_EVERY = 10.0  # seconds between two lines in a log; a terminal is told at every look


@dataclass(frozen=True)
class Plan:
    """What a server is started with.

    ``name`` is what people call the model, ``names`` what requests may call it, the usual one first;
    ``gpus`` the memory of each GPU in MiB, ``at`` where it listens and is asked.
    """

    name: str
    settings: Settings
    names: tuple[str, ...]
    python: Path
    device: Device
    gpus: tuple[int, ...]
    threads: int
    extra: tuple[str, ...] = ()
    at: node.Address = node.Address()

    def line(self, port: int) -> list[str]:
        """Return the command line of this plan at a port."""
        return command.build(self.settings, self.names, self.python, port, self.device, self.extra,
                             self.at.listens)

    def variables(self) -> dict[str, str]:
        """Return the environment variables that this plan sets, besides the key."""
        return command.variables(self.settings, self.device, self.threads)

    def told(self, port: int) -> tuple[str, ...]:
        """Return both as one command, to be recorded and shown."""
        return *(f"{name}={value}" for name, value in self.variables().items()), *self.line(port)


def start(plan: Plan, *, port: int, timeout: float,
          say: Callable[[str], None]) -> tuple[Server, subprocess.Popen[bytes] | None]:
    """Return a server that answers, and its process if it was started here.

    One that already serves the same by the same command is returned as it is, unless a port was asked for or it is
    another SLURM job's, which may end at any time and has its own GPUs.
    """
    job, restart = node.job()
    for other in records.servers():
        if job is not None and other.job == job and other.restart < restart:
            other.forget()  # of this job's life before it was requeued
        elif port == 0 and other.here and other.does and other.job == job and other.command == plan.told(other.port):
            say(f"{plan.name} is already served")
            return other, None
    command.check_room(plan.settings, plan.device, plan.gpus)
    port = process.free_port(port, plan.at.listens)
    key = secrets.token_urlsafe(32)
    log = records.folder() / f"{records.file_stem(plan.name, node.name(), port)}.log"
    say(f"starting {plan.name} on {plan.device}: {shlex.join(plan.told(port))}")
    begun = time.monotonic()
    leader = process.launch(plan.line(port), command.around(os.environ) | plan.variables() | {"VLLM_API_KEY": key}, log)
    server: Server | None = None
    waiting = _Waiting(plan.name)
    try:
        server = Server(plan.name, plan.names[0], node.url(plan.at.asked, port), key, leader.pid,
                        psutil.Process(leader.pid).create_time(), node.name(), str(log), records.now(),
                        plan.told(port), names=plan.names, shared=plan.at.shared, job=job, restart=restart)
        server.save()  # before it is ready, so that `stop` finds it whatever happens here
        found = ready.wait(leader, server.url, key, server.model, plan.settings.runner, log,
                           timeout=timeout, show=waiting)
    except BaseException:
        process.end(leader.pid, GRACE)
        if server is not None:
            server.forget()
        raise
    finally:
        waiting.close()
    revision, folder = _files(plan.settings)
    server = replace(server, does=found.does, dimensions=found.dimensions, window=found.window, revision=revision,
                     folder=folder)
    server.save()
    say(f"{plan.name} answered its first request after {clock(time.monotonic() - begun)}")
    return server, leader


def watch(server: Server, leader: subprocess.Popen[bytes], grace: float) -> None:
    """Return when somebody asked the server to end; raise MemlabError when it died by itself.

    When this command is asked to end, by an exception that a signal raises, so is the server.
    """
    status = 0
    try:
        status = leader.wait()
    finally:
        if status in {0, -signal.SIGTERM}:
            end(server, grace)
        else:  # its log is needed; what it left behind is not
            process.end(leader.pid, grace)
            server.forget()
    if status not in {0, -signal.SIGTERM}:
        raise process.death(status, Path(server.log))


def end(server: Server, grace: float) -> None:
    """End a server; nothing of it is kept."""
    process.end(server.pid, grace)
    server.forget()
    Path(server.log).unlink(missing_ok=True)


def line(server: Server) -> str:
    """Return what a run needs on its command line to use a server, quoted for the shell where need be."""
    if server.model == packaged.embedded_folder().name:
        return f"chat=embedded chat.url={server.url}"
    slot, form = {"chat": ("chat", "server"), "embeddings": ("embedder", "openai"),
                  "score": ("cross_encoder", "http_rerank")}[server.does]
    said: dict[str, object] = {"model": server.model, "url": server.url}
    if server.does == "chat":
        said |= {"window": server.window, "revision": server.revision, "tokenizer": server.folder}
    else:
        said |= {"key_env": KEY_VARIABLE, "dimensions": server.dimensions}
    if server.does == "embeddings":
        said["ask_dimensions"] = "false"
    return " ".join([f"{slot}={form}", *(_override(f"{slot}.{k}", str(v)) for k, v in said.items() if v is not None)])


def _override(name: str, value: str) -> str:
    """Write one override for a shell; Hydra wants quotes around a value with marks of its own grammar.

    >>> print(_override("chat.model", "Qwen/Qwen2.5-7B"), _override("chat.tokenizer", "/my models/a"))
    chat.model=Qwen/Qwen2.5-7B 'chat.tokenizer="/my models/a"'
    """
    if re.fullmatch(r"[\w./:@-]+", value):
        return f"{name}={value}"
    inner = value.replace("\\", "\\\\").replace('"', '\\"')
    return shlex.quote(f'{name}="{inner}"')


class _Waiting:
    """Tells how long it has been and what the log says last."""

    def __init__(self, name: str) -> None:
        self._name, self._next, self._wide = name, _SHOW_EVERY, sys.stderr.isatty()

    def __call__(self, seconds: float, last: str) -> None:
        text = f"{self._name}: {clock(seconds)}, {last.strip()}"[:110]
        if self._wide:
            print(f"\r{text:<110}", end="", file=sys.stderr, flush=True)
        elif seconds >= self._next:
            self._next += _SHOW_EVERY
            print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the line on a terminal."""
        if self._wide:
            print(f"\r{'':<110}\r", end="", file=sys.stderr, flush=True)


def _files(settings: Settings) -> tuple[str | None, str | None]:
    """Return the commit that a hub model was served at and the folder of its files, as the hub's own cache has them."""
    if command.is_folder(settings.model):
        return None, settings.model
    from huggingface_hub.constants import HF_HUB_CACHE

    kept = Path(HF_HUB_CACHE) / f"models--{settings.model.replace('/', '--')}"
    ref = kept / "refs" / (settings.revision or "main")
    commit = ref.read_text().strip() if ref.is_file() else settings.revision
    folder = kept / "snapshots" / (commit or "-")
    return commit, str(folder) if folder.is_dir() else None
