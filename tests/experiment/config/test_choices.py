"""Configuration files beside memlab's own: which are taken, and what is said of the others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from memlab.experiment.config import choices
from memlab.experiment.config.instantiate import CONF, choice_settings, make_dataset, options
from memlab.experiment.harness.sweep import read
from memlab.support.errors import Faults, MemlabError
from tests.experiment.config.files import faults_of, put

FIXED = "_target_: memlab.stages.rank.select.Fixed\nk: 7\n"


def test_techniques_data_systems_and_experiments_are_found_until_the_next_line(tmp_path: Path) -> None:
    put(tmp_path / "my conf", rank__select__seven=FIXED,
        data__lives="_target_: memlab.data.synthetic.dataset.Synthetic\nlives: 3\n",
        system__mine="# @package _global_\ndefaults:\n  - override /rank/select: seven\n",
        exp__two="# @package _global_\ndefaults:\n  - override /rank/rerank: none\nhydra:\n"
                 "  mode: MULTIRUN\n  sweeper:\n    params:\n      rank/select: seven,fixed\n")
    place = f"conf_dir='{tmp_path}/my conf'"
    (arm,) = read([place, "system=mine", "data=lives"]).arms
    assert (arm.pipeline.select.k, arm.dataset.lives) == (7, 3)
    assert [one.pipeline.select.k for one in read([place, "+exp=two"]).arms] == [7, 10]
    assert "seven" in options("rank.select")
    assert make_dataset("lives", lives=2).lives == 2
    assert {"conf_dir", "plugins"}.isdisjoint(arm.config)
    assert arm.plugins() == {}
    with pytest.raises(Faults, match="there is no 'seven' here"):
        read(["rank/select=seven"])
    assert "seven" not in options("rank/select")


def test_a_table_of_techniques_is_read_as_memlabs_own(tmp_path: Path) -> None:
    put(tmp_path, techniques="rank/select:\n  seven:\n    _target_: memlab.stages.rank.select.Fixed\n    k: 7\n"
                             "  nine:\n    defaults: [seven, _self_]\n    k: 9\n"
                             "data:\n  lives: {_target_: memlab.data.synthetic.dataset.Synthetic, seed: 1e3}\n")
    arms = read([f"conf_dir={tmp_path}", "data=lives", "data.seed=3", "rank/select=seven,nine"], True).arms
    assert [(arm.name, arm.pipeline.select.k) for arm in arms] == [("seven", 7), ("nine", 9)]
    assert {"seven", "nine", "gap"} <= set(options("rank.select"))
    assert choice_settings("data/lives")["seed"] == 1000.0  # read as in every other file
    (fault,) = faults_of(f"conf_dir={tmp_path}", "rank/select=sevn")
    assert "did you mean 'seven'?" in fault


@pytest.mark.parametrize(("name", "text", "fault"), [
    ("techniques", "rank/selct: {seven: {k: 7}}", "there is no slot 'rank/selct'; did you mean 'rank/select'?"),
    ("techniques", "system: {mine: {seed: 7}}", "system has a file for each choice, system/NAME.yaml"),
    ("techniques", "rank/select: [seven]", "rank/select: expected a mapping, NAME: settings"),
    ("techniques", "rank/select: {seven: 7}", "rank/select.seven: expected settings, key: value"),
    ("techniques", "rank/select: {gap: {k: 7}}", f"there is such a choice already, in {CONF}/techniques.yaml"),
    ("rank/selct/seven", FIXED, "there is no slot 'rank/selct'; did you mean 'rank/select'?"),
    ("rank/select/fixed", FIXED, f"there is such a choice already, in {CONF}/techniques.yaml"),
    ("system/plain", "k: 1", f"there is such a choice already, in {CONF}/system/plain.yaml"),
    ("rank/rerank/none", FIXED, "there is such a choice already"),
    ("rank/select/seven", "k: [1", "cannot be read as YAML"),
    ("rank/select/seven", "a: &a [x]\nb: [*a, *a]", "aliases are not allowed"),
    ("rank/select/seven", "[1, 2]", "expected key: value lines"),
    ("system/mine", "arms: {five: {seed: 5}}", "arms: only the file of an experiment declares arms"),
    ("exp/mine", "arms: [1]", "arm/mine: expected a mapping, NAME: settings"),
    ("exp/mine", "arms: {five: 5}", "arm/mine.five: expected settings, key: value"),
    ("arm/ann/flat", "seed: 7", f"there is such a choice already, in {CONF}/exp/ann.yaml"),
])
def test_a_file_that_cannot_be_used_is_one_sentence_with_its_name(
        tmp_path: Path, name: str, text: str, fault: str) -> None:
    (answer,) = choices.use([put(tmp_path, **{name: text})], CONF)
    assert answer.startswith(f"{tmp_path}/{name}.yaml: ")
    assert fault in answer
    assert "\n" not in answer


def test_a_folder_or_file_that_is_none_is_a_fault_beside_the_others(tmp_path: Path) -> None:
    assert "holds no file for a slot, such as" in faults_of(f"conf_dir={tmp_path}")[0]
    first, second = faults_of(f"conf_dir={tmp_path}/nowhere", "rank.select.kk=1")
    assert first == f"conf_dir={tmp_path}/nowhere: there is no folder {tmp_path}/nowhere"
    assert "kk" in second
    put(tmp_path, rank__select__seven=FIXED)
    (tmp_path / "rank/select/seven.yaml").rename(tmp_path / "rank/select/seven.yml")
    os.mkfifo(tmp_path / "rank" / "select" / "pipe.yaml")
    pipe, ending = choices.use([tmp_path], CONF)
    assert "no plain file" in pipe
    assert ending.endswith("seven.yml: expected a name that ends in .yaml")
    choices.use([], CONF)
    assert choices.search_path() == []


def test_what_hydra_cannot_compose_is_its_own_message_in_one_line(tmp_path: Path) -> None:
    put(tmp_path, exp__mine="# @package _global_\narms: {five: {defaults: [{override /rank/select: gpa}]}}\n",
        rank__select__long='{"defaults": ["' + "x" * 5000 + '"]}')
    (fault,) = faults_of(f"conf_dir={tmp_path}", "+arm/mine=five")
    assert "Could not find 'rank/select/gpa'" in fault
    (fault,) = faults_of(f"conf_dir={tmp_path}", "rank/select=long")
    assert "cannot be composed: File name too long" in fault


def test_each_technique_is_read_as_hydra_reads_a_file() -> None:
    """Hydra's YAML reads 1e-3 as a number and dates as text; a plain reader does not."""
    table = OmegaConf.to_container(OmegaConf.load(CONF / "techniques.yaml"), resolve=False)
    own = choices.own_choices(CONF)
    assert {f"{slot}/{name}": settings for slot, entries in table.items() for name, settings in entries.items()} == {
        name: choice.settings for name, choice in own.items() if choice.path.stem == "techniques"
        and choice.settings is not None}
    for path in sorted((CONF / "exp").glob("*.yaml")):
        declared = OmegaConf.to_container(OmegaConf.load(path), resolve=False).get("arms", {})
        assert declared == {name.rpartition("/")[2]: choice.settings for name, choice in own.items()
                            if name.startswith(f"arm/{path.stem}/")}


@pytest.mark.parametrize("text", ["rank/select: {seven: [", "rank/select: [seven]", "rank/select:\n  seven:\n", "7"])
def test_a_table_of_memlab_that_is_no_table_is_named_with_its_place(tmp_path: Path, text: str) -> None:
    put(tmp_path, techniques=text)
    with pytest.raises(MemlabError, match=f"{tmp_path}/techniques.yaml: cannot be read as NAME: settings"):
        choices.own_choices(tmp_path)
