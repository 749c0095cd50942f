"""This machine among others: its name, an address that the others reach, its SLURM job; whether a server answers."""

from __future__ import annotations

import ipaddress
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import psutil

from memlab.errors import MemlabError

LOOPBACK = "127.0.0.1"
NODE = "node"
"""Said in an address's place: the address by which the other nodes reach this one."""

_ELSEWHERE = "192.0.2.1"  # of a network kept for examples: nothing is sent there, it only tells the way out
_ANSWER = 3.0  # seconds that a living server may take to say so
_COMMAND = 20.0  # seconds for one word of SLURM's


@dataclass(frozen=True)
class Address:
    """Where a server ``listens``, where it is ``asked``, and whether that is ``shared`` with other nodes."""

    listens: str = LOOPBACK
    asked: str = LOOPBACK
    shared: bool = False


def name() -> str:
    """Return this node's name, as SLURM calls it within a job."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def same(one: str, other: str) -> bool:
    """Tell whether two names mean one node, be it with its domain or without.

    >>> same("n1", "n1.cluster"), same("n1", "n10")
    (True, False)
    """
    return one.partition(".")[0] == other.partition(".")[0]


def job() -> tuple[str | None, int]:
    """Return the SLURM job that this process runs in, and how often it was requeued; None outside of one."""
    return os.environ.get("SLURM_JOB_ID") or None, int(os.environ.get("SLURM_RESTART_COUNT") or 0)


def jobs() -> set[str] | None:
    """Return the user's SLURM jobs that are queued or run; None where SLURM does not say."""
    told = _slurm("squeue", "--noheader", "--me", "--format=%A")
    return None if told is None else set(told.split())


def address(host: str | None) -> Address:
    """Return the address that ``--host`` says; only this machine's own if it says nothing.

    One that means every interface is asked by this node's own. Raises MemlabError for a name that is unknown.

    >>> address("::1")
    Address(listens='::1', asked='::1', shared=False)
    """
    if host is None:
        return Address()
    if host == NODE:
        return Address(own(), own(), shared=True)
    try:
        listens = str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise MemlabError(f"the address {host} is unknown here ({error.strerror or error})",
                          fix="--host node takes this node's own; without it only this machine asks") from error
    everywhere = ipaddress.ip_address(listens.partition("%")[0]).is_unspecified
    return Address(listens, own() if everywhere else listens, shared=not _is_loopback(listens))


def url(at: str, port: int) -> str:
    """Write the base address of a server.

    >>> url("10.0.0.3", 80), url("fd00::2", 80)
    ('http://10.0.0.3:80/v1', 'http://[fd00::2]:80/v1')
    """
    return f"http://{f'[{at}]' if ':' in at else at}:{port}/v1"


def own() -> str:
    """Return the address by which other nodes reach this one; raises MemlabError where there is none.

    In a SLURM job it is the one by which SLURM reaches the node, if that is told as a number (a cluster on one machine
    tells loopback); else what the node's name means, the way out of the machine, any interface that is up: the
    first that is not loopback, since many machines give their own name a loopback address.
    """
    said = _slurm("scontrol", "--oneliner", "show", "node", name()) if "SLURM_JOB_ID" in os.environ else None
    known = re.search(r"NodeAddr=(\S+)", said or "")
    called = known[1] if known else name()
    try:
        return str(ipaddress.ip_address(called))
    except ValueError:
        pass
    found = next((one for one in _candidates(called) if not _is_loopback(one)), None)
    if found is None:
        raise MemlabError(f"{name()} has no address that other nodes reach", fix="--host ADDRESS")
    return found


def answers(base: str, key: str) -> bool:
    """Tell whether a server at an address takes a key."""
    try:
        given = {"Authorization": f"Bearer {key}"}
        asked = httpx.get(f"{base}/models", headers=given, timeout=_ANSWER, trust_env=False)
    except (httpx.TransportError, httpx.InvalidURL):
        return False
    return asked.status_code == httpx.codes.OK


def _is_loopback(at: str) -> bool:
    return ipaddress.ip_address(at.partition("%")[0]).is_loopback


def _candidates(called: str) -> Iterator[str]:
    for one in (called, socket.gethostname()):
        try:
            yield from (str(found[4][0]) for found in socket.getaddrinfo(one, None, socket.AF_INET, socket.SOCK_STREAM))
        except OSError:
            continue
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        try:
            way.connect((_ELSEWHERE, 9))
            yield str(way.getsockname()[0])
        except OSError:  # no way out: a node without a network of its own
            pass
    up = {card for card, state in psutil.net_if_stats().items() if state.isup}
    for card, all_of_it in psutil.net_if_addrs().items():
        yield from (one.address for one in all_of_it if card in up and one.family == socket.AF_INET)


def _slurm(*command: str) -> str | None:
    """Return what a command of SLURM's prints; None where there is no SLURM, or it does not answer."""
    if shutil.which(command[0]) is None:
        return None
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND, check=True).stdout  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
