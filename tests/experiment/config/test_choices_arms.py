"""Arms that an experiment declares in its own file."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from memlab.experiment.config.compose import compose
from memlab.experiment.config.instantiate import options
from memlab.experiment.config.overrides import groups
from memlab.experiment.harness.sweep import read
from memlab.support.errors import Faults
from tests.experiment.config.files import put
from tests.experiment.config.test_choices import FIXED

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
  far: {seed: 1e3}
"""


def test_the_arms_of_an_experiment_are_choices_and_no_settings() -> None:
    configs, faults = compose(["+exp=ann"], False)
    assert configs is not None
    assert faults == []
    assert [arm.config.search.dense.index.exact_below for arm in configs.arms[1:]] == [0] * 4
    assert len({arm.config.search.dense.index._target_ for arm in configs.arms}) == 5
    assert not any("arms" in arm.config for arm in configs.arms)
    assert options("arm/ann") == sorted(["flat", "ivf", "hnsw", "ivfpq", "sq8"])


def test_an_arm_is_chosen_with_and_without_its_experiment() -> None:
    (arm,) = read(["+arm/hybrid=rrf"]).arms
    assert arm.name == "rrf"
    assert list(arm.pipeline.dense.kinds) == ["turn.user"]
    (arm,) = read(["+exp=ann", "+arm/ann=flat", "search.dense.depth=7"]).arms
    assert (arm.pipeline.dense.depth, arm.name) == (7, "flat")


def test_arms_of_a_folder_hold_until_the_next_line_names_another(tmp_path: Path) -> None:
    for k in (5, 6):
        place = put(tmp_path / f"{k}", exp__mine=MINE.replace("k: 5", f"k: {k}"))
        assert [arm.pipeline.select.k for arm in read([f"conf_dir={place}", "+exp=mine"]).arms[1:]] == [k]
    assert read([f"conf_dir={place}", "+exp=mine", "+arm/mine=five"]).arms[0].pipeline.select.k == 6
    configs, _ = compose([f"conf_dir={place}", "+exp=mine", "+arm/mine=far"], False)
    assert configs is not None
    assert configs.base.seed == 1000.0  # a number, as in every other file
    with pytest.raises(Faults, match="there is no slot 'arm/mine'"):
        read(["+arm/mine=five"])
    assert "arm/mine" not in groups()


def test_files_below_arm_stand_beside_declared_arms_and_may_choose_techniques_of_the_folder(tmp_path: Path) -> None:
    seven = {"seven": {"defaults": [{"override /rank/select": "seven"}, {"override /search/lexical": "none"}]}}
    put(tmp_path, rank__select__seven=FIXED, exp__mine=yaml.safe_dump({"arms": seven}),
        arm__mine__six="# @package _global_\nrank: {select: {k: 6}}\n",
        arm__ann__wide="# @package _global_\nrank: {select: {k: 7}}\n")
    place = f"conf_dir={tmp_path}"
    assert [arm.pipeline.select.k for arm in read([place, "+arm/mine=seven,six"], True).arms] == [7, 6]
    assert [arm.name for arm in read([place, "+exp=ann", "+arm/ann=wide,flat"]).arms] == ["wide", "flat"]


def test_a_misspelt_setting_of_an_arm_is_named_with_its_file(tmp_path: Path) -> None:
    put(tmp_path, exp__mine="# @package _global_\narms:\n  five: {rank: {selct: {k: 5}}}\n")
    with pytest.raises(Faults, match=rf"{tmp_path}/exp/mine.yaml, rank.selct.k: .* did you mean rank.select.k?"):
        read([f"conf_dir={tmp_path}", "+arm/mine=five"])
