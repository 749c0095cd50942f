"""Processes of a server: started as a group, ended as a group, and diagnosed if they die."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from memlab.models.serving.servers import LOOPBACK
from memlab.support.errors import MemlabError
from memlab.support.text.display import safe_line

_PREFIX = re.compile(r"^(\(\w[\w-]* pid=\d+\) )?((INFO|WARNING|ERROR) [\d-]+ [\d:]+ )?(\[[\w.]+:\d+\] )?")
_RAISED = re.compile(r"^([\w.]*(Error|Exception|Interrupt)): (?!Engine core initialization failed)")
_LAST = 6  # lines of a log that an error shows

CAUSES: tuple[tuple[str, str, str], ...] = (
    (r"out of memory|OutOfMemory|Cannot allocate memory|MemoryError|[Nn]o available memory for the cache|"
     r"less than desired GPU memory|[Nn]ot enough memory",
     "there is not enough memory",
     "--max-len N (smaller), --gpu-memory SHARE, --tensor-parallel N, or a smaller model"),
    (r"larger than the (maximum number of tokens|available KV cache memory)|KV cache is needed",
     "the attention cache does not hold one full window", "--max-len N (smaller), or --kv-cache GIB on a CPU"),
    (r"greater than the derived max_model_len", "--max-len is more than the model's own window", "a smaller --max-len"),
    (r"[Aa]ddress already in use", "the port is taken", "leave --port out: a free one is found"),
    (r"gated repo|GatedRepoError|401 Client Error", "this model is gated on the hub",
     "accept its licence there, then export HF_TOKEN=YOUR_TOKEN"),
    (r"LocalEntryNotFound|couldn't connect to|Can't load the configuration|RepositoryNotFound|not a valid model id|"
     r"is not a local folder", "the model was not found, or the hub cannot be reached",
     "check the name and the network, or give a local folder"),
    (r"No module named '?vllm", "vLLM is not in this environment", "memlab serve --create-env cpu"),
)
"""(pattern in the log, cause, fix); the first match counts."""


def launch(command: Sequence[str], variables: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Start a command as the leader of its own session, so that a terminal's Ctrl-C does not reach it."""
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
        return subprocess.Popen(command, env=dict(variables), stdin=subprocess.DEVNULL, stdout=out,  # noqa: S603
                                stderr=subprocess.STDOUT, start_new_session=True)


def end(pid: int, grace: float) -> None:
    """End the group that ``pid`` leads, and all descendants; kill those that run after ``grace`` seconds."""
    try:
        leader = psutil.Process(pid)
        family = [leader, *leader.children(recursive=True)]
    except psutil.NoSuchProcess:
        family = []
    _signal(pid, signal.SIGTERM)
    _, remaining = psutil.wait_procs(family, timeout=grace)
    _signal(pid, signal.SIGKILL)  # also processes that joined the group since
    for process in remaining:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(remaining, timeout=5)


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def free_port(port: int, host: str = LOOPBACK) -> int:
    """Return the port if it is free at an address of this machine; return any free one for 0."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            what, fix = (f"port {port}", "leave --port out: a free one is found") if port else (
                f"the address {host}", "--host node takes this node's own")
            raise MemlabError(f"{what} is not usable ({getattr(error, 'strerror', None) or error})", fix=fix) from error
        return int(probe.getsockname()[1])


def tail(log: Path, size: int = 200_000) -> list[str]:
    """Return the last lines of a log without vLLM's prefixes and overwritten text, safe to print."""
    try:
        with log.open("rb") as handle:
            handle.seek(max(0, log.stat().st_size - size))
            text = handle.read().decode(errors="replace")
    except OSError:
        return []
    lines = (_PREFIX.sub("", line.rsplit("\r", 1)[-1].rstrip().expandtabs(2)) for line in text.split("\n"))
    return [safe_line(line, 300) for line in lines if line.strip()]


def last_lines(log: Path) -> str:
    """Return the last lines of a log, as an error shows them."""
    return _log_quote(tail(log)[-_LAST:])


def death(status: int, log: Path) -> MemlabError:
    """Return the error for a server that ended by itself: the cause, the log's last lines, and the fix."""
    lines = tail(log)
    text = "\n".join(lines)
    out_of_memory = ("it was killed, most likely because memory ran out", "close other programs, or a smaller model")
    unknown = out_of_memory if status == -signal.SIGKILL else ("see below", "fix what the log names, then start again")
    what, fix = next(((what, fix) for pattern, what, fix in CAUSES if re.search(pattern, text)), unknown)
    last = lines[-_LAST:]
    first_error = [line for line in lines[:-_LAST] if _RAISED.match(line)][:1]  # it causes the others
    excerpt = _log_quote([*(line for line in first_error if line not in last), *last])
    ended = f"signal {-status}" if status < 0 else f"status {status}"
    return MemlabError(f"the server ended ({ended}): {what}{excerpt}\n", where=str(log), fix=fix)


def _log_quote(lines: Sequence[str]) -> str:
    return "".join(f"\n  | {line}" for line in lines)
