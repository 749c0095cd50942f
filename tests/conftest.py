"""Fixtures shared by all tests."""

from __future__ import annotations

import copy
import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["POLARS_MAX_THREADS"] = "1"   # the processes of tests share the cores

import certifi
import pytest
from hypothesis import settings

from memlab.experiment.config import composition
from memlab.support.errors import HIDDEN
from tests import leak_guard
from tests.examples import NIGHTLY

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of benchmark dev files beside the checkout; tests that need it skip when it is absent."""
    folder = Path(os.environ.get("MEMLAB_SHARED_DATA", SHARED))
    if not folder.is_dir():
        pytest.skip(f"benchmark dev files are not at {folder} (set MEMLAB_SHARED_DATA)")
    return folder


@pytest.fixture(autouse=True)
def memlab_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has a home of its own, so that no test reads or fills a user's store."""
    home = tmp_path_factory.mktemp("memlab-home")
    monkeypatch.setenv("MEMLAB_HOME", str(home))
    return home


@pytest.fixture(scope="session", autouse=True)
def one_certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Clients of local servers trust one certificate: to read those of the web takes 50 ms for each client."""
    file = tmp_path_factory.mktemp("certificates") / "one.pem"
    end = "-----END CERTIFICATE-----\n"
    file.write_text(certifi.contents().partition(end)[0] + end)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(file))
        yield


@pytest.fixture(scope="session", autouse=True)
def composed_once() -> Iterator[None]:
    """What Hydra composes of memlab's own files is kept for all tests of a process: a third of a second each."""
    kept: dict[str, Any] = {}
    load_or_make = composition.load_or_make

    def load(inputs: Any, make: Callable[[], Any]) -> Any:
        key = json.dumps(inputs)
        if key not in kept:
            kept[key] = load_or_make(inputs, make)
        return copy.deepcopy(kept[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(composition, "load_or_make", load)
        yield


leak_guard.install()  # every test fails in which a stage looks outside its tables
EXAMPLES = int(os.environ.get("MEMLAB_EXAMPLES") or (10_000 if NIGHTLY else 20))
settings.register_profile("memlab", deadline=None, max_examples=EXAMPLES,  # a busy machine is no failure
                          derandomize=not NIGHTLY)  # new examples each night
settings.load_profile("memlab")


@pytest.hookimpl(tryfirst=True)   # xdist reads the groups in its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Group tests: those of one file run in one process, and so do all that need the one SLURM of a machine.

    Files with slow tests come first, so that no process is left with one at the end. ``MEMLAB_ORDER=SEED`` shuffles.
    """
    for item in items:
        name = "testbed" if "testbed" in getattr(item, "fixturenames", ()) else str(item.path)
        item.add_marker(pytest.mark.xdist_group(name))
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
    if seed := os.environ.get("MEMLAB_ORDER"):
        random.Random(seed).shuffle(items)


@pytest.fixture(autouse=True)
def nothing_remembered() -> None:
    """Stages run in every test: what the process remembers of an earlier one would hide what a store is asked."""
    HIDDEN.clear()
    choices = sys.modules.get("memlab.experiment.config.choices")
    if choices and choices.more_choices():
        choices.use([], sys.modules["memlab.experiment.config.instantiate"].CONF)
    if "memlab.pipeline.pipeline" in sys.modules:
        sys.modules["memlab.pipeline.pipeline"]._MEMO.clear()
