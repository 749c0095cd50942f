"""Configuration files beside memlab's own: which are taken, and what is said of the others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memlab.config import folders
from memlab.config.compose import compose
from memlab.config.instantiate import CONF, file_names, make_dataset, options
from memlab.errors import Faults
from memlab.harness.sweep import read

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


def test_the_next_command_line_does_not_know_them(tmp_path: Path) -> None:
    put(tmp_path, rank__select__seven=FIXED)
    read([f"conf_dir={tmp_path}", "rank/select=seven"])
    with pytest.raises(Faults, match="there is no 'seven' here"):
        read(["rank/select=seven"])
    assert "seven" not in file_names("rank/select")


def test_a_misspelt_technique_is_suggested(tmp_path: Path) -> None:
    (fault,) = faults_of(put(tmp_path, rank__select__seven=FIXED), "rank/select=sevn")
    assert "there is no 'sevn' here; did you mean 'seven'?" in fault


@pytest.mark.parametrize(("name", "text", "expected"), [
    ("rank__selct__seven", FIXED, "there is no slot 'rank/selct'; did you mean 'rank/select'?"),
    ("rank__select__fixed", FIXED, f"there is such a file already, {CONF / 'rank' / 'select' / 'fixed.yaml'}"),
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
    assert folders.search_path() == []


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
