"""Configuration files beside memlab's own: which are taken, and what is said of the others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from memlab.config import choices
from memlab.config.compose import compose
from memlab.config.instantiate import CONF, choice_settings, make_dataset, options
from memlab.errors import Faults, MemlabError
from memlab.harness.sweep import read
from tests.choices import choices_of, comment

FIXED = "_target_: memlab.rank.select.Fixed\nk: 7\n"


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    compose([], False)


def put(folder: Path, **files: str) -> Path:
    """Write files; ``__`` in a name stands for a slash."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def faults_of(folder: Path, *words: str) -> list[str]:
    with pytest.raises(Faults) as raised:
        read([f"conf_dir={folder}", *words])
    return raised.value.faults


def test_techniques_data_systems_and_experiments_are_found(tmp_path: Path) -> None:
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
    assert "conf_dir" not in arm.config
    assert "plugins" not in arm.config
    assert arm.plugins() == {}


def test_a_table_of_techniques_is_read_as_memlabs_own(tmp_path: Path) -> None:
    put(tmp_path, techniques="rank/select:\n  seven:\n    _target_: memlab.rank.select.Fixed\n    k: 7\n"
                             "  nine:\n    defaults: [seven, _self_]\n    k: 9\n"
                             "data:\n  lives: {_target_: memlab.data.synthetic.dataset.Synthetic, seed: 1e3}\n")
    place = f"conf_dir={tmp_path}"
    arms = read([place, "data=lives", "data.seed=3", "rank/select=seven,nine"], True).arms
    assert [(arm.name, arm.pipeline.select.k) for arm in arms] == [("seven", 7), ("nine", 9)]
    assert {"seven", "nine", "gap"} <= set(options("rank.select"))
    assert choice_settings("data/lives")["seed"] == 1000.0  # read as in every other file
    (fault,) = faults_of(tmp_path, "rank/select=sevn")
    assert "did you mean 'seven'?" in fault
    with pytest.raises(Faults, match="there is no 'seven' here"):
        read(["rank/select=seven"])


@pytest.mark.parametrize(("text", "fault"), [
    ("rank/selct: {seven: {k: 7}}", "there is no slot 'rank/selct'; did you mean 'rank/select'?"),
    ("system: {mine: {seed: 7}}", "system has a file for each choice, system/NAME.yaml"),
    ("hydra/launcher: {mine: {seed: 7}}", "there is no slot 'hydra/launcher'"),
    ("rank/select: [seven]", "rank/select: expected a mapping, NAME: settings"),
    ("rank/select: {seven: 7}", "rank/select.seven: expected settings, key: value"),
    ("rank/select: {7: {k: 7}}", "rank/select.7: expected a name of letters"),
    ("rank/select: {gap: {k: 7}}", "rank/select.gap: there is such a choice already, in "),
    ("rank/select: {mine: {k: 7}}", "rank/select.mine: there is such a choice already, in "),
    ("rank/select: {seven: {defaults: fixed}}", "rank/select.seven: defaults: expected a list"),
    ("rank/select: {seven: {k: 7}}\narms: {a: {seed: 1}}", "arms: only the file of an experiment declares arms"),
])
def test_a_table_that_cannot_be_used_is_a_fault_of_its_file(tmp_path: Path, text: str, fault: str) -> None:
    (told,) = faults_of(put(tmp_path, techniques=text, rank__select__mine=FIXED))
    assert f"{tmp_path}/techniques.yaml: {fault}" in told


def test_each_technique_is_read_as_hydra_reads_a_file_and_is_described() -> None:
    """Hydra's YAML reads 1e-3 as a number and dates as text; a plain reader does not."""
    table = OmegaConf.to_container(OmegaConf.load(CONF / "techniques.yaml"), resolve=False)
    assert {f"{slot}/{name}": settings for slot, entries in table.items() for name, settings in entries.items()} == {
        name: choice.settings for name, choice in choices.own_choices(CONF).items() if choice.path.stem == "techniques"
        and choice.settings is not None}
    assert [name for name in choices_of(*table) if not comment(name)] == []
    assert [name for name in choices_of(*table) if (CONF / f"{name}.yaml").is_file()
            and name.rpartition("/")[2] in table[name.rpartition("/")[0]]] == []


@pytest.mark.parametrize("text", ["rank/select: {seven: [", "rank/select: [seven]", "rank/select:\n  seven:\n", "7"])
def test_a_table_of_memlab_that_is_no_table_is_told_with_its_place(tmp_path: Path, text: str) -> None:
    put(tmp_path, techniques=text)
    with pytest.raises(MemlabError, match=f"{tmp_path}/techniques.yaml: cannot be read as NAME: settings"):
        choices.own_choices(tmp_path)


def test_the_next_command_line_does_not_know_them(tmp_path: Path) -> None:
    put(tmp_path, rank__select__seven=FIXED)
    read([f"conf_dir={tmp_path}", "rank/select=seven"])
    with pytest.raises(Faults, match="there is no 'seven' here"):
        read(["rank/select=seven"])
    assert "seven" not in options("rank/select")


def test_a_misspelt_technique_is_suggested(tmp_path: Path) -> None:
    (fault,) = faults_of(put(tmp_path, rank__select__seven=FIXED), "rank/select=sevn")
    assert "there is no 'sevn' here; did you mean 'seven'?" in fault


@pytest.mark.parametrize(("name", "text", "expected"), [
    ("rank__selct__seven", FIXED, "there is no slot 'rank/selct'; did you mean 'rank/select'?"),
    ("rank__select__fixed", FIXED, f"there is such a choice already, in {CONF / 'techniques.yaml'}"),
    ("system__plain", "k: 1", f"there is such a choice already, in {CONF / 'system' / 'plain.yaml'}"),
    ("rank__rerank__none", FIXED, "there is such a choice already"),
    ("rank__select__seven", "k: [1", "cannot be read as YAML"),
    ("rank__select__seven", "[1, 2]", "expected key: value lines"),
    ("rank__seven", FIXED, "there is no slot 'rank'"),
])
def test_a_file_that_cannot_be_used_is_a_fault_beside_the_others(
        tmp_path: Path, name: str, text: str, expected: str) -> None:
    first, second = faults_of(put(tmp_path, **{name: text}), "rank.select.kk=1")
    assert expected in first
    assert "\n" not in first
    assert "kk" in second


def test_an_ending_that_hydra_passes_over_is_a_fault(tmp_path: Path) -> None:
    put(tmp_path, rank__select__seven=FIXED)
    (tmp_path / "rank/select/seven.yaml").rename(tmp_path / "rank/select/seven.yml")
    (fault,) = faults_of(tmp_path)
    assert fault.endswith("seven.yml: expected a name that ends in .yaml")


def test_a_folder_without_files_or_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    assert "holds no file for a slot, such as" in faults_of(tmp_path)[0]
    (fault,) = faults_of(tmp_path / "nowhere")
    assert fault == f"conf_dir={tmp_path}/nowhere: there is no folder {tmp_path}/nowhere"
    assert choices.search_path() == []


def test_only_the_command_line_names_code_and_folders(tmp_path: Path) -> None:
    put(tmp_path, exp__sly="# @package _global_\nplugins: [os]\n")
    (fault,) = faults_of(tmp_path, "+exp=sly")
    assert fault == "plugins: a configuration file sets it; name it on the command line, plugins=..."


@pytest.mark.parametrize(("text", "fault"), [
    ("k: " + "9" * 6000, "cannot be read as YAML"), ('"' + "9" * 6000, "cannot be read as YAML"),
    ('"true"', "expected key: value lines"), ("[1]", "expected key: value lines"),
    ('{"defaults": ["' + "x" * 5000 + '"]}', "cannot be composed: File name too long"),
    ("a: &a [x]\nb: [*a, *a]", "aliases are not allowed"), ("k: 1\n" + "#" * 2**20, "more than 1,048,576 characters"),
    ('{"defaults": [{"": ["_self_"]}], "k": 1}', "cannot be composed")])
def test_a_file_of_another_form_is_a_fault(tmp_path: Path, text: str, fault: str) -> None:
    put(tmp_path, rank__select__mine=text)
    assert any(fault in line for line in faults_of(tmp_path, "rank/select=mine"))


def test_a_pipe_among_the_files_is_a_fault(tmp_path: Path) -> None:
    put(tmp_path, rank__select__mine="k: 1")
    (tmp_path / "rank" / "select" / "mine.yaml").unlink()
    os.mkfifo(tmp_path / "rank" / "select" / "mine.yaml")
    assert any("no plain file" in line for line in faults_of(tmp_path, "rank/select=mine"))
