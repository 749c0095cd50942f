"""The testbed is a SLURM: it runs, holds limits, pre-empts, loses nodes and its controller, and leaves nothing."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.experiment.cluster.bed import Bed, command, wait_until

pytestmark = pytest.mark.nightly


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not waited for does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def empty() -> Iterator[Path]:
    """A short path: SLURM's sockets lie below it."""
    folder = Path(tempfile.mkdtemp(prefix="memlab-testbed-"))
    yield folder
    command("down", folder=folder)
    shutil.rmtree(folder, ignore_errors=True)


def test_nothing_listens_but_on_loopback(testbed: Bed) -> None:
    own = {pid for pids in testbed.processes().values() for pid in pids}
    heard = [one for one in psutil.net_connections("inet") if one.pid in own and one.status == psutil.CONN_LISTEN]
    assert len(heard) >= 5   # the controller, accounting, three nodes
    assert {one.laddr.ip for one in heard} == {"127.0.0.1"}


def test_a_second_testbed_lives_beside_is_mended_and_leaves_nothing(testbed: Bed, empty: Path) -> None:
    line = ("up", "--nodes", "1", "--no-accounting")
    assert command(*line, folder=empty).returncode == 0
    second = Bed(empty)
    os.kill(second.processes()["munged"][0], signal.SIGKILL)
    assert command("status", folder=empty).returncode == 1
    assert command("up", "--nodes", "2", "--no-accounting", folder=empty).returncode == 0   # cleaned, and made anew
    wait_until(lambda: second.nodes() == {"n1": "idle", "n2": "idle"})
    assert command(*line, folder=empty).returncode == 2   # a whole one is not replaced by one of another size

    job = second.submit("sleep 1000 & wait", log=empty / "log" / "job")
    wait_until(lambda: second.state(job) == "RUNNING" and len(second.processes()["n1"]) > 2)
    own = [pid for pids in second.processes().values() for pid in pids]
    assert command("down", folder=empty).returncode == 0
    assert not any(map(alive, own))
    assert not empty.exists()
    assert command("down", folder=empty).returncode == 0
    wait_until(lambda: set(testbed.nodes().values()) == {"idle"})
