"""Records of the running servers: one file per server in ``$MEMLAB_HOME/serving``, with its address and its key.

Only their owner can read the files (0600, in a folder 0700). On a cluster the folder is shared: each node finds the
servers of all nodes there. The record of a dead process is removed when it is read; the record of another node's server
is removed if its SLURM job has ended and it does not answer.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from memlab.errors import MemlabError
from memlab.runtime.files import atomic_path, os_errors
from memlab.runtime.paths import home
from memlab.servers import node

_NO_RECORD = (ValueError, TypeError, LookupError, AttributeError)


@dataclass(frozen=True)
class Server:
    """One server that memlab started.

    Attributes:
        name: The user's name of the model.
        model: Its name in requests; ``names`` are all that requests may use.
        pid: Leader of the process group.
        create_time: Start time of that process, according to the system: a process id alone may be reused.
        started: Time of the record, for people.
        command: The command line and variables, without the key.
        task: "chat", "embeddings" or "score"; "" while the server is not ready.
        dimensions: Length of an embedding.
        window: Maximum tokens of prompt and reply together.
        folder: Folder of the model's files.
        shared: Whether other nodes reach the server.
        job: The SLURM job that it runs in; ``restart`` is how often that was requeued.
    """

    name: str
    model: str
    url: str
    key: str
    pid: int
    create_time: float
    host: str
    log: str
    started: str
    command: tuple[str, ...]
    task: str = ""
    dimensions: int | None = None
    window: int | None = None
    revision: str | None = None
    folder: str | None = None
    names: tuple[str, ...] = ()
    shared: bool = False
    job: str | None = None
    restart: int = 0

    @property
    def port(self) -> int:
        """The port it listens on."""
        return urlsplit(self.url).port or 0

    @property
    def file(self) -> Path:
        """The file of its record."""
        return folder() / f"{file_stem(self.name, self.host, self.port)}.json"

    @property
    def is_local(self) -> bool:
        """Whether it was started on this machine, whose name may include its domain."""
        return self.host.partition(".")[0] == node.name().partition(".")[0]

    @property
    def reachable(self) -> bool:
        """Whether this machine can connect to it: a loopback address works only on its own machine."""
        return self.shared or self.is_local

    def alive(self) -> bool:
        """Return whether its process still runs (True for another machine's)."""
        if not self.is_local:
            return True
        try:
            process = psutil.Process(self.pid)
            return abs(process.create_time() - self.create_time) < 2 and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    def save(self) -> None:
        """Write the record, readable by its owner alone."""
        with atomic_path(self.file) as temporary:
            temporary.touch(0o600)
            temporary.write_text(json.dumps(asdict(self), indent=1))

    def remove(self) -> None:
        """Remove the record."""
        self.file.unlink(missing_ok=True)


def folder() -> Path:
    """Return the folder of records and logs, ``$MEMLAB_HOME/serving``; it is created."""
    path = home() / "serving"
    with os_errors("the folder cannot be made", path, fix="export MEMLAB_HOME=/a/folder/you/own"):
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.chmod(0o700)
    return path


def file_name(name: str) -> str:
    """Return a model's name as a file name.

    >>> file_name("Qwen/Qwen2.5-7B-Instruct")
    'Qwen_Qwen2.5-7B-Instruct'
    """
    return re.sub(r"[^\w.-]+", "_", name).strip("_.") or "model"


def file_stem(name: str, host: str, port: int) -> str:
    """Return the file name of a server; it names the node, since nodes share the folder.

    >>> file_stem("a/b", "n1.cluster", 8000)
    'a_b-n1-8000'
    """
    return f"{file_name(name)}-{file_name(host.partition('.')[0])}-{port}"


def servers() -> list[Server]:
    """List the running servers, by name and port; records of dead ones are removed."""
    running: dict[Path, Server] = {}
    for path in folder().glob("*.json"):
        try:
            running[path] = _read(path)
        except FileNotFoundError:  # another command removed it meanwhile
            continue
        except _NO_RECORD as error:
            raise MemlabError("no record of a server", where=str(path), fix="remove the file") from error
    jobs = node.jobs() if any(server.job and not server.is_local for server in running.values()) else None
    for path, server in list(running.items()):
        # another cluster may share the folder, so its jobs are unknown here: a server that answers has not ended
        job_ended = not server.is_local and server.job and jobs is not None and server.job not in jobs
        if not server.alive() or (job_ended and not node.answers(server.url, server.key)):
            path.unlink(missing_ok=True)
            del running[path]
    return sorted(running.values(), key=lambda server: (server.name, server.host, server.port))


def reachable_servers() -> list[Server]:
    """List the running servers that this machine reaches, newest first; unreadable records are skipped.

    Removes no record and sends no request: another node's server counts as running.
    """
    servers = []
    for path in (home() / "serving").glob("*.json"):
        with suppress(OSError, *_NO_RECORD):
            server = _read(path)
            if server.reachable and server.alive():
                servers.append(server)
    return sorted(servers, key=lambda server: (-server.create_time, server.name, server.port))


def _read(path: Path) -> Server:
    row = json.loads(path.read_text())
    return Server(**row | {name: tuple(row[name]) for name in ("command", "names")})
