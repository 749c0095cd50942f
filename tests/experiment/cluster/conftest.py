"""One testbed for all cluster tests, tidied after each."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.experiment.cluster.bed import Bed, command


@pytest.fixture(scope="session")
def testbed() -> Iterator[Bed]:
    """A real SLURM of three nodes; tests skip where it cannot be had, and fail there if MEMLAB_CLUSTER=1."""
    folder = Path(tempfile.mkdtemp(prefix="memlab-testbed-"))
    done = command("up", "--nodes", "3", folder=folder)
    if done.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        (pytest.fail if os.environ.get("MEMLAB_CLUSTER") == "1" else pytest.skip)(f"no testbed here: {done.stderr}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        patch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
        yield Bed(folder)
    assert command("down", folder=folder).returncode == 0


@pytest.fixture(autouse=True)
def tidied(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that has the testbed leaves no job and no dead node to the next one."""
    yield
    if "testbed" in request.fixturenames:
        request.getfixturevalue("testbed").tidy()
