"""Arms that an experiment declares in its own file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from omegaconf import OmegaConf

from memlab.config.choices import own_choices
from memlab.config.compose import compose
from memlab.config.instantiate import CONF, options
from memlab.config.overrides import groups
from memlab.errors import Faults
from memlab.harness.sweep import read
from tests.config.test_choices import FIXED, faults_of, put

MINE = """# @package _global_
hydra:
  mode: MULTIRUN
  sweeper:
    params:
      +arm/mine: gap,five
arms:
  gap:
    defaults: [{override /rank/select: gap}]
  five:
    rank: {select: {k: 5}}
"""


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    compose([], False)


def test_the_arms_of_an_experiment_are_choices_and_no_settings() -> None:
    configs, faults = compose(["+exp=ann"], False)
    assert configs is not None
    assert faults == []
    assert [arm.search.dense.index.exact_below for arm in configs.arms[1:]] == [0] * 4
    assert len({arm.search.dense.index._target_ for arm in configs.arms}) == 5
    assert not any("arms" in arm for arm in configs.arms)
    assert options("arm/ann") == sorted(["flat", "ivf", "hnsw", "ivfpq", "sq8"])
    assert "arm/ann" in groups()


def test_an_arm_is_chosen_with_and_without_its_experiment() -> None:
    (arm,) = read(["+arm/hybrid=rrf"]).arms
    assert arm.name == "rrf"
    assert list(arm.pipeline.dense.kinds) == ["turn.user"]
    (arm,) = read(["+exp=ann", "+arm/ann=flat", "search.dense.depth=7"]).arms
    assert (arm.pipeline.dense.depth, arm.name) == (7, "flat")


def test_a_misspelt_arm_is_suggested() -> None:
    with pytest.raises(Faults, match="there is no 'falt' here; did you mean 'flat'?"):
        read(["+exp=ann", "+arm/ann=falt"])


def test_each_arm_is_read_as_hydra_reads_a_file() -> None:
    """Hydra's YAML reads 1e-3 as a number and dates as text; a plain reader does not."""
    for path in sorted((CONF / "exp").glob("*.yaml")):
        declared = OmegaConf.to_container(OmegaConf.load(path), resolve=False).get("arms", {})
        assert declared == {name.rpartition("/")[2]: choice.settings for name, choice in own_choices(CONF).items()
                            if name.startswith(f"arm/{path.stem}/")}


def test_arms_of_a_folder_hold_until_the_next_line_names_another(tmp_path: Path) -> None:
    one = put(tmp_path / "one", exp__mine=MINE)
    two = put(tmp_path / "two", exp__mine=MINE.replace("k: 5", "k: 6"))
    assert [arm.pipeline.select.k for arm in read([f"conf_dir={one}", "+exp=mine"]).arms[1:]] == [5]
    assert [arm.pipeline.select.k for arm in read([f"conf_dir={two}", "+exp=mine"]).arms[1:]] == [6]
    assert "arm/mine" in groups()
    with pytest.raises(Faults, match="there is no slot 'arm/mine'"):
        read(["+arm/mine=five"])
    assert "arm/mine" not in groups()


def test_a_number_of_an_arm_is_read_as_in_every_other_file(tmp_path: Path) -> None:
    put(tmp_path, exp__mine="# @package _global_\narms:\n  far: {seed: 1e3}\n")
    configs, _ = compose([f"conf_dir={tmp_path}", "+exp=mine", "+arm/mine=far"], False)
    assert configs is not None
    assert configs.base.seed == 1000.0


def test_files_below_arm_stand_beside_declared_arms(tmp_path: Path) -> None:
    put(tmp_path, exp__mine=MINE, arm__mine__six="# @package _global_\nrank: {select: {k: 6}}\n",
        arm__ann__wide="# @package _global_\nrank: {select: {k: 7}}\n")
    place = f"conf_dir={tmp_path}"
    arms = read([place, "+exp=mine", "+arm/mine=five,six"]).arms
    assert [arm.pipeline.select.k for arm in arms] == [5, 6]
    assert [arm.name for arm in read([place, "+exp=ann", "+arm/ann=wide,flat"]).arms] == ["wide", "flat"]


@pytest.mark.parametrize(("arms", "fault"), [
    ([1], "arms: expected a mapping, NAME: settings"),
    (None, "arms: expected a mapping, NAME: settings"),
    ({"five": 5}, "arms.five: expected settings, key: value"),
    ({5: {"seed": 1}}, "arms.5: expected a name of letters"),
    ({"a/b": {"seed": 1}}, "arms.a/b: expected a name of letters"),
    ({"five": {"defaults": {"override /rank/select": "gap"}}}, "arms.five: defaults: expected a list"),
    ({"five": {"defaults": [{"override /rank/selct": "gap"}]}},
     "arms.five: defaults: there is no slot 'rank/selct'; did you mean 'rank/select'?"),
    ({"five": {"defaults": [{"override /rank/select": "gpa"}]}},
     "arms.five: defaults: there is no 'gpa' in rank/select; did you mean 'gap'?"),
    ({"six": {"seed": 6}}, "arms.six: there is such a choice already, in "),
    ({"five": {"defaults": [{"optional /rank/select": "gap"}]}}, "would be passed over"),
])
def test_a_mapping_that_cannot_be_used_is_a_fault_of_its_file(tmp_path: Path, arms: object, fault: str) -> None:
    put(tmp_path, exp__mine=yaml.safe_dump({"arms": arms}), arm__mine__six="# @package _global_\nseed: 7\n")
    (told,) = faults_of(tmp_path)
    assert f"{tmp_path}/exp/mine.yaml: " in told
    assert fault in told


def test_an_arm_may_choose_a_technique_of_its_folder_and_none(tmp_path: Path) -> None:
    put(tmp_path, rank__select__seven=FIXED, exp__mine=yaml.safe_dump({"arms": {"seven": {"defaults": [
        {"override /rank/select": "seven"}, {"override /search/lexical": "none"}]}}}))
    (arm,) = read([f"conf_dir={tmp_path}", "+arm/mine=seven"]).arms
    assert arm.pipeline.select.k == 7


def test_a_setting_that_nothing_reads_is_told_with_the_file(tmp_path: Path) -> None:
    put(tmp_path, exp__mine="# @package _global_\narms:\n  five: {rank: {select: {kk: 5}}}\n")
    (told,) = faults_of(tmp_path, "+arm/mine=five")
    assert f"{tmp_path}/exp/mine.yaml" in told
    assert "no setting 'kk'" in told


def test_an_arm_of_memlab_is_not_replaced(tmp_path: Path) -> None:
    put(tmp_path, arm__ann__flat="# @package _global_\nseed: 7\n")
    (told,) = faults_of(tmp_path)
    assert f"there is such a choice already, in {CONF}/exp/ann.yaml" in told


def test_only_experiments_declare_arms(tmp_path: Path) -> None:
    put(tmp_path, system__mine="# @package _global_\narms: {five: {seed: 5}}\n")
    (told,) = faults_of(tmp_path)
    assert told.endswith("system/mine.yaml: arms: only the file of an experiment declares arms")
