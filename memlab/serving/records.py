"""What runs: one small file a server in ``$MEMLAB_HOME/serving``, which holds its address and its key.

The files are for their owner alone (0600, in a folder 0700). On a cluster the folder is shared: any node finds there
the servers of all. One whose process is gone is removed when it is met; that of another node's server when its SLURM
job is gone too and nobody answers.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from memlab.errors import MemlabError
from memlab.runtime.home import home
from memlab.serving import node


@dataclass(frozen=True)
class Server:
    """One server that memlab started.

    ``name`` is what the user called the model, ``model`` what requests call it. ``pid`` leads the process group;
    ``born`` is the time that the system gives for its start, since a process id alone may have been given anew.
    ``does`` is "chat", "embeddings" or "score", and "" while the server is not ready. ``command`` is what was
    started (the key is not in it), ``dimensions`` the length of an embedding, ``window`` the tokens
    that prompt and reply may have together, ``folder`` where the model's files lie. ``names`` is all that requests may
    call the model, ``shared`` whether other nodes reach the server, ``job`` and ``restart`` the SLURM job that it runs
    in and how often that was requeued.
    """

    name: str
    model: str
    url: str
    key: str
    pid: int
    born: float
    host: str
    log: str
    started: str
    command: tuple[str, ...]
    does: str = ""
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
        """Where its record lies."""
        return folder() / f"{file_stem(self.name, self.host, self.port)}.json"

    @property
    def here(self) -> bool:
        """Whether it was started on this machine; of another machine's processes nothing is known."""
        return node.same(self.host, node.name())

    @property
    def reachable(self) -> bool:
        """Whether its address means that server here: a loopback address is another one's on every machine."""
        return self.shared or self.here

    def alive(self) -> bool:
        """Tell whether its process still runs (True for another machine's)."""
        if not self.here:
            return True
        try:
            process = psutil.Process(self.pid)
            return abs(process.create_time() - self.born) < 2 and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    def save(self) -> None:
        """Write the record, readable by its owner alone, whole or not at all."""
        aside = self.file.with_suffix(f".{secrets.token_hex(4)}")
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as handle:
            json.dump(asdict(self), handle, indent=1)
        aside.replace(self.file)

    def forget(self) -> None:
        """Remove the record."""
        self.file.unlink(missing_ok=True)


def folder() -> Path:
    """Return the folder of records and logs, made if need be: ``$MEMLAB_HOME/serving``."""
    path = _place()
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.chmod(0o700)
    except OSError as error:
        raise MemlabError(f"cannot be made ({error.strerror or error})", where=str(path),
                          fix="export MEMLAB_HOME=/a/folder/you/own") from error
    return path


def file_name(name: str) -> str:
    """Make a model's name fit for a file.

    >>> file_name("Qwen/Qwen2.5-7B-Instruct")
    'Qwen_Qwen2.5-7B-Instruct'
    """
    return re.sub(r"[^\w.-]+", "_", name).strip("_.") or "model"


def file_stem(name: str, host: str, port: int) -> str:
    """Name a server's files; two nodes that share the folder may serve one model at the same port.

    >>> file_stem("a/b", "n1.cluster", 8000)
    'a_b-n1-8000'
    """
    return f"{file_name(name)}-{file_name(host.partition('.')[0])}-{port}"


def now() -> str:
    """The time of day for a record, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def servers() -> list[Server]:
    """List the servers that live, by name and port; records of dead ones are removed."""
    found: list[Server] = []
    elsewhere: list[tuple[Path, Server]] = []
    for path in sorted(folder().glob("*.json")):
        try:
            server = _read(path)
            lives = server.alive()
        except FileNotFoundError:  # another command removed it meanwhile
            continue
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise MemlabError("no record of a server", where=str(path), fix="remove the file") from error
        if not lives:
            path.unlink(missing_ok=True)
        elif server.here or server.job is None:
            found.append(server)
        else:
            elsewhere.append((path, server))
    jobs = node.jobs() if elsewhere else None
    for path, server in elsewhere:
        # the jobs may be another cluster's that shares the folder: a server that answers is not gone
        if jobs is None or server.job in jobs or node.answers(server.url, server.key):
            found.append(server)
        else:
            path.unlink(missing_ok=True)
    return sorted(found, key=lambda server: (server.name, server.host, server.port))


def readable() -> list[Server]:
    """List the servers that live and can be reached, the newest first; what cannot be read is passed over.

    Nothing is changed, and nobody is asked: of another node's server only its record is known.
    """
    found = []
    for path in _place().glob("*.json"):
        with suppress(OSError, ValueError, TypeError, LookupError, AttributeError):
            server = _read(path)
            if server.reachable and server.alive():
                found.append(server)
    return sorted(found, key=lambda server: (-server.born, server.name, server.port))


def _place() -> Path:
    return home() / "serving"


def _read(path: Path) -> Server:
    """Read a record; raises what a file raises that is none."""
    known = {f.name for f in fields(Server)}
    said = {name: value for name, value in json.loads(path.read_text()).items() if name in known}
    return Server(**said | {name: tuple(said.get(name, ())) for name in ("command", "names")})
