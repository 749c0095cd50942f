"""Records of running model servers, shared by all nodes of a cluster, and the names and addresses of this node.

There is one file per server in ``$MEMLAB_HOME/serving``, with its address and its key. Only their owner can read the
files (0600, in a folder 0700). On a cluster the folder is shared: each node finds the servers of all nodes there. The
record of a dead process is removed when it is read; the record of another node's server is removed if its SLURM job has
ended and it does not answer.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from memlab.support.errors import MemlabError
from memlab.support.files import atomic_path, disk_faults
from memlab.support.paths import home

LOOPBACK = "127.0.0.1"
NODE = "node"
"""``--host node``: the address by which other nodes reach this one."""

_REMOTE = "192.0.2.1"  # reserved for examples; nothing is sent there, it only selects the route out of this machine
_ANSWER = 3.0  # seconds in which a running server answers
_COMMAND = 20.0  # seconds for one SLURM command
_NO_RECORD = (ValueError, TypeError, LookupError, AttributeError, RecursionError)


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
        return records_folder() / f"{file_stem(self.name, self.host, self.port)}.json"

    @property
    def is_local(self) -> bool:
        """Whether it was started on this machine, whose name may include its domain."""
        return self.host.partition(".")[0] == node_name().partition(".")[0]

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


def records_folder() -> Path:
    """Return the folder of records and logs, ``$MEMLAB_HOME/serving``; it is created."""
    path = home() / "serving"
    with disk_faults(path, other="export MEMLAB_HOME=/a/folder/you/own"):
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


def running_servers() -> list[Server]:
    """List the running servers, by name and port; records of dead ones are removed."""
    running: dict[Path, Server] = {}
    for path in records_folder().glob("*.json"):
        try:
            running[path] = _read(path)
        except FileNotFoundError:  # another command removed it meanwhile
            continue
        except _NO_RECORD as error:
            raise MemlabError("no record of a server", where=str(path), fix="remove the file") from error
    jobs = slurm_jobs() if any(server.job and not server.is_local for server in running.values()) else None
    for path, server in list(running.items()):
        # another cluster may share the folder, so its jobs are unknown here: a server that answers has not ended
        job_ended = not server.is_local and server.job and jobs is not None and server.job not in jobs
        if not server.alive() or (job_ended and not answers(server.url, server.key)):
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
    server = Server(**row | {name: tuple(row[name]) for name in ("command", "names")})
    if not (isinstance(server.name, str) and server.port):
        raise ValueError("no name, or no port")
    return server


@dataclass(frozen=True)
class Address:
    """The addresses at which a server listens and clients connect, and whether other nodes reach it (``shared``)."""

    listen: str = LOOPBACK
    connect: str = LOOPBACK
    shared: bool = False


def node_name() -> str:
    """Return the name of this node; within a SLURM job, the one that SLURM uses."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def slurm_job() -> tuple[str | None, int]:
    """Return the SLURM job of this process (None outside a job), and how often it was requeued."""
    return os.environ.get("SLURM_JOB_ID") or None, int(os.environ.get("SLURM_RESTART_COUNT") or 0)


def slurm_jobs() -> set[str] | None:
    """Return the user's queued and running SLURM jobs; None if SLURM does not answer."""
    ids = _slurm("squeue", "--noheader", "--me", "--format=%A")
    return None if ids is None else set(ids.split())


def address_of(host: str | None) -> Address:
    """Return the address for the value of ``--host``; None is loopback, for this machine alone.

    Clients of a server on all interfaces connect to this node's own address. Raises MemlabError for an unknown name.

    >>> address_of("::1")
    Address(listen='::1', connect='::1', shared=False)
    """
    if host is None:
        return Address()
    if host == NODE:
        return Address(own_address(), own_address(), shared=True)
    try:
        listen = str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise MemlabError(f"the address {host} is unknown here ({error.strerror or error})",
                          fix="--host node takes this node's own; without --host only this machine connects") from error
    everywhere = ipaddress.ip_address(listen.partition("%")[0]).is_unspecified
    return Address(listen, own_address() if everywhere else listen, shared=not _is_loopback(listen))


def base_url(at: str, port: int) -> str:
    """Return the base address of a server.

    >>> base_url("10.0.0.3", 80), base_url("fd00::2", 80)
    ('http://10.0.0.3:80/v1', 'http://[fd00::2]:80/v1')
    """
    return f"http://{f'[{at}]' if ':' in at else at}:{port}/v1"


def own_address() -> str:
    """Return the address by which other nodes reach this one; raises MemlabError if there is none.

    In a SLURM job it is SLURM's address of the node if that is an IP address (loopback on a cluster of one machine).
    Otherwise it is the address that the node's name resolves to or, if that is loopback, the address of the route out
    of the machine.
    """
    text = _slurm("scontrol", "--oneliner", "show", "node", node_name()) if slurm_job()[0] else None
    match = re.search(r"NodeAddr=(\S+)", text or "")
    host = match[1] if match else node_name()
    with suppress(ValueError):
        return str(ipaddress.ip_address(host))
    reachable = next((one for one in _candidates(host) if not _is_loopback(one)), None)
    if reachable is None:
        raise MemlabError(f"{node_name()} has no address that other nodes reach", fix="--host ADDRESS")
    return reachable


def answers(base: str, key: str) -> bool:
    """Return whether a server at an address accepts a key."""
    import httpx  # a tenth of a second, which the help page does not need

    try:
        with httpx.stream("GET", f"{base}/models", headers={"Authorization": f"Bearer {key}"}, timeout=_ANSWER,
                          trust_env=False) as reply:  # whatever it says, however long
            return reply.status_code == httpx.codes.OK
    except (httpx.TransportError, httpx.InvalidURL):
        return False


def _is_loopback(at: str) -> bool:
    return ipaddress.ip_address(at.partition("%")[0]).is_loopback


def _candidates(host: str) -> Iterator[str]:
    with suppress(OSError):
        yield from (str(info[4][0]) for info in socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM))
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:  # no route: no network
        route.connect((_REMOTE, 9))
        yield str(route.getsockname()[0])


def _slurm(*command: str) -> str | None:
    """Return the output of a SLURM command; None if there is no SLURM, or it does not answer."""
    if shutil.which(command[0]) is None:
        return None
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND, check=True).stdout  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
