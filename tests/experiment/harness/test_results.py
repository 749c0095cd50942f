from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from memlab.experiment.harness.results import finished_arms
from tests.sealing import seal


def test_only_folders_with_a_manifest_are_finished(runs: Path) -> None:
    next(runs.glob("gap-*/manifest.json")).unlink()
    assert "gap" not in [arm.name for arm in finished_arms(runs).arms]


def test_the_newest_manifest_of_an_arm_wins_whatever_its_hash(runs: Path) -> None:
    old = next(runs.glob("gap-*"))
    new = shutil.copytree(old, runs / "gap-00000000")
    seal(new, finished="2026-11-22T00:00:00")
    found = finished_arms(runs)
    assert [arm.folder for arm in found.arms if arm.name == "gap"] == [new]
    assert found.older == (old,)


def test_declared_order_first_twins_behind_their_arm_upper_bounds_last(runs: Path) -> None:
    twin = shutil.copytree(next(runs.glob("gap-*")), runs / "gap.twin-1")
    seal(twin, arm="gap.twin")
    names = [arm.name for arm in finished_arms(runs, ["oracle", "gap", "fixed_5"]).arms]
    assert names == ["gap", "gap.twin", "fixed_5", "by_type", "calibrated", "fixed_10", "oracle"]
    assert [a.name for a in finished_arms(runs).arms][2:4] == ["fixed_5", "fixed_10"]  # numbers as numbers


def test_an_arm_that_sees_ids_is_no_system_either(runs: Path) -> None:
    seal(next(runs.glob("gap-*")), tainted=True)
    assert [arm.name for arm in finished_arms(runs).arms if arm.oracle] == ["gap", "oracle"]


@pytest.mark.parametrize("name", ["manifest.json", "metrics.json"])
@pytest.mark.parametrize("content", ["{", "[1]", "[" * 200_000, None])
def test_a_truncated_file_is_named_and_the_other_arms_stay(
        runs: Path, name: str, content: str | None) -> None:
    path = next(runs.glob("gap-*")) / name
    path.unlink()
    if content is None:
        os.mkfifo(path)
    else:
        path.write_text(content)
    found = finished_arms(runs)
    assert len(found.arms) == 5
    assert len(found.broken) == 1
    assert str(path) in found.broken[0]


def test_an_arm_of_an_earlier_configuration_stands_in_for_none_that_is_named_exactly(runs: Path) -> None:
    there = {arm.name: arm.folder.name for arm in finished_arms(runs).arms}
    name = next(iter(there))
    found = finished_arms(runs, exact=there | {name: f"{name}-0123456789"})
    assert name not in [arm.name for arm in found.arms]
    assert runs / there[name] in found.older
    assert [arm.folder.name for arm in finished_arms(runs, exact=there).arms] == list(there.values())


def with_data(folder: Path, limit: int | None, **about: object) -> None:
    seal(folder, data={"limit": limit}, **about)


def test_runs_on_other_data_settings_are_set_apart_even_under_the_same_name(runs: Path) -> None:
    for path in list(runs.glob("*-*")):
        with_data(path, None)
    gap = next(runs.glob("gap-*"))
    few = shutil.copytree(gap, runs / "gap-00000000")
    with_data(few, 3, finished="2030-01-01T00:00:00", command="memlab run data.limit=3")
    ours = {"gap": gap.name}
    assert gap in [arm.folder for arm in finished_arms(runs, exact=ours).arms]
    assert [arm.folder for arm in finished_arms(runs, exact=ours).other_data] == [few]
    found = finished_arms(runs, exact={"gap": few.name})
    assert [arm.folder for arm in found.arms] == [few]
    assert len(found.other_data) == 6
    assert found.older == ()
    (runs / "comparison.json").touch()
    assert [arm.folder for arm in finished_arms(runs, last=ours).other_data] == [few]
    assert [arm.folder for arm in finished_arms(runs).arms] == [few]  # of the last command
    assert few in [arm.folder for arm in finished_arms(runs, ["gap"]).arms]  # the newest of that name


def test_an_experiment_may_vary_its_data(runs: Path) -> None:
    gap, fixed = (next(runs.glob(f"{name}-*")) for name in ("gap", "fixed_5"))
    with_data(gap, 3)
    with_data(fixed, 5)
    arms = finished_arms(runs, exact={"gap": gap.name, "fixed_5": fixed.name}).arms
    assert [arm.name for arm in arms] == ["fixed_5", "gap"]
