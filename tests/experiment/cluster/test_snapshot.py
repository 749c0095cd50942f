"""Snapshots of sweeps: jobs run the source and the configuration of the submission."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from memlab.experiment.cluster.snapshot import Snapshot, take_snapshot
from memlab.experiment.harness.arm import Arm
from memlab.experiment.harness.sweep import Sweep, read
from memlab.support.errors import MemlabError
from tests.small import words


@cache
def composed() -> Sweep:
    return read(words(Path("/nowhere"), "rank/select=fixed,gap"), multirun=True)


def arms(root: Path) -> list[Arm]:
    return [replace(arm, out=root / "runs") for arm in composed().arms]


def small_snapshot(root: Path) -> Snapshot:
    """Two arms on tiny lives, without a model."""
    return take_snapshot(arms(root), ["rank/select=fixed,gap"], f"{root}/store", 1)


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    snapshot = small_snapshot(tmp_path)
    (snapshot.folder / "sweep.json").write_text('{"arms": [')
    with pytest.raises(MemlabError, match="no record of a sweep"):
        snapshot.jobs()
