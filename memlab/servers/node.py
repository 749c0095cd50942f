"""This node of a cluster: its name, its address for other nodes, and its SLURM job."""

from __future__ import annotations

import ipaddress
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from memlab.errors import MemlabError

LOOPBACK = "127.0.0.1"
NODE = "node"
"""``--host node``: the address by which other nodes reach this one."""

_REMOTE = "192.0.2.1"  # reserved for examples; nothing is sent there, it only selects the route out of this machine
_ANSWER = 3.0  # seconds in which a running server answers
_COMMAND = 20.0  # seconds for one SLURM command


@dataclass(frozen=True)
class Address:
    """The addresses at which a server listens and clients connect, and whether other nodes reach it (``shared``)."""

    listen: str = LOOPBACK
    connect: str = LOOPBACK
    shared: bool = False


def name() -> str:
    """Return the name of this node; within a SLURM job, the one that SLURM uses."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def job() -> tuple[str | None, int]:
    """Return the SLURM job of this process (None outside a job), and how often it was requeued."""
    return os.environ.get("SLURM_JOB_ID") or None, int(os.environ.get("SLURM_RESTART_COUNT") or 0)


def jobs() -> set[str] | None:
    """Return the user's queued and running SLURM jobs; None if SLURM does not answer."""
    ids = _slurm("squeue", "--noheader", "--me", "--format=%A")
    return None if ids is None else set(ids.split())


def address(host: str | None) -> Address:
    """Return the address for the value of ``--host``; None is loopback, for this machine alone.

    Clients of a server on all interfaces connect to this node's own address. Raises MemlabError for an unknown name.

    >>> address("::1")
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


def url(at: str, port: int) -> str:
    """Return the base address of a server.

    >>> url("10.0.0.3", 80), url("fd00::2", 80)
    ('http://10.0.0.3:80/v1', 'http://[fd00::2]:80/v1')
    """
    return f"http://{f'[{at}]' if ':' in at else at}:{port}/v1"


def own_address() -> str:
    """Return the address by which other nodes reach this one; raises MemlabError if there is none.

    In a SLURM job it is SLURM's address of the node if that is an IP address (loopback on a cluster of one machine).
    Otherwise it is the address that the node's name resolves to or, if that is loopback, the address of the route out
    of the machine.
    """
    text = _slurm("scontrol", "--oneliner", "show", "node", name()) if job()[0] else None
    match = re.search(r"NodeAddr=(\S+)", text or "")
    host = match[1] if match else name()
    with suppress(ValueError):
        return str(ipaddress.ip_address(host))
    reachable = next((one for one in _candidates(host) if not _is_loopback(one)), None)
    if reachable is None:
        raise MemlabError(f"{name()} has no address that other nodes reach", fix="--host ADDRESS")
    return reachable


def answers(base: str, key: str) -> bool:
    """Return whether a server at an address accepts a key."""
    import httpx  # a tenth of a second, which the help page does not need

    try:
        reply = httpx.get(f"{base}/models", headers={"Authorization": f"Bearer {key}"}, timeout=_ANSWER,
                          trust_env=False)
    except (httpx.TransportError, httpx.InvalidURL):
        return False
    return reply.status_code == httpx.codes.OK


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
