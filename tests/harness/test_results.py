from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from memlab.errors import MemlabError
from memlab.harness.results import finished_arms


def test_only_folders_with_a_manifest_are_finished(runs: Path) -> None:
    next(runs.glob("gap-*/manifest.json")).unlink()
    assert "gap" not in [arm.name for arm in finished_arms(runs).arms]


def test_the_newest_manifest_of_an_arm_wins_whatever_its_hash(runs: Path) -> None:
    old = next(runs.glob("gap-*"))
    new = shutil.copytree(old, runs / "gap-00000000")
    manifest = json.loads((new / "manifest.json").read_text())
    (new / "manifest.json").write_text(json.dumps(manifest | {"finished": "2026-11-22T00:00:00"}))
    found = finished_arms(runs)
    assert [arm.folder for arm in found.arms if arm.name == "gap"] == [new]
    assert found.older == (old,)


def test_declared_order_first_twins_behind_their_arm_upper_bounds_last(runs: Path) -> None:
    twin = shutil.copytree(next(runs.glob("gap-*")), runs / "gap.twin-1")
    manifest = json.loads((twin / "manifest.json").read_text())
    (twin / "manifest.json").write_text(json.dumps(manifest | {"arm": "gap.twin"}))
    names = [arm.name for arm in finished_arms(runs, ["oracle", "gap", "fixed_5"]).arms]
    assert names == ["gap", "gap.twin", "fixed_5", "by_type", "calibrated", "fixed_10", "oracle"]
    assert [a.name for a in finished_arms(runs).arms][2:4] == ["fixed_5", "fixed_10"]  # numbers as numbers


def test_an_arm_that_configures_an_oracle_is_an_upper_bound_even_if_its_manifest_is_silent(runs: Path) -> None:
    path = next(runs.glob("oracle-*/manifest.json"))
    path.write_text(json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != "oracle"}))
    assert [arm.name for arm in finished_arms(runs).arms if arm.oracle] == ["oracle"]


@pytest.mark.parametrize("name", ["manifest.json", "metrics.json"])
@pytest.mark.parametrize("content", ["{", "[1]", "\x00"])
def test_a_truncated_file_is_named_and_the_other_arms_stay(runs: Path, name: str, content: str) -> None:
    path = next(runs.glob("gap-*")) / name
    path.write_text(content)
    found = finished_arms(runs)
    assert len(found.arms) == 5
    assert len(found.broken) == 1
    assert str(path) in found.broken[0]


def test_a_damaged_table_is_named_with_what_to_do(runs: Path) -> None:
    arm = finished_arms(runs).arms[0]
    (arm.folder / "questions.parquet").write_bytes(b"not parquet")
    with pytest.raises(MemlabError, match=r"questions\.parquet.*Fix: delete the folder"):
        _ = arm.questions


def test_an_arm_of_an_earlier_configuration_stands_in_for_none_that_is_named_exactly(runs: Path) -> None:
    there = {arm.name: arm.folder.name for arm in finished_arms(runs).arms}
    name = next(iter(there))
    found = finished_arms(runs, exact=there | {name: f"{name}-0123456789"})
    assert name not in [arm.name for arm in found.arms]
    assert runs / there[name] in found.older
    assert [arm.folder.name for arm in finished_arms(runs, exact=there).arms] == list(there.values())
