"""What Hydra composes of memlab's files is found on disk; whatever it follows from may change, and it is composed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hydra
import pytest
from omegaconf import OmegaConf

from memlab.config import choices, composition
from memlab.config.compose import _compose_files, _hydra_alone, compose, compose_arm
from memlab.config.instantiate import CONF, options
from memlab.evaluate.curves import NAMES
from memlab.harness.sweep import experiment_arms
from memlab.runtime.files import encode_line

GAP = "rank/select=gap"


@pytest.fixture
def composed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that Hydra has composed."""
    names: list[str] = []
    whole: Any = hydra.compose

    def count(name: str, *args: object, **options: object) -> object:
        names.append(name)
        return whole(name, *args, **options)

    monkeypatch.setattr(hydra, "compose", count)
    forget()
    return names


def forget() -> None:
    """Forget what this process has composed, as the next one does."""
    _compose_files.cache_clear()
    _hydra_alone.cache_clear()


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of memlab's configuration files, which is read in their place."""
    copy = shutil.copytree(CONF, tmp_path / "conf")
    monkeypatch.setattr(composition, "CONF", copy)
    choices.use([], copy)
    yield copy
    choices.use([], CONF)


def of_config(conf: Path, *chosen: str) -> dict[str, Any]:
    choices.use([], conf)
    return composition.composition(composition.CONFIG, chosen)


def test_the_next_process_composes_nothing_and_has_the_same_arms(composed: list[str]) -> None:
    first, _ = compose(["rank/select=gap,fixed", "seed=3"], True)
    assert len(composed) == 4  # Hydra's own, the common part and two arms
    forget()
    again, faults = compose(["rank/select=gap,fixed", "seed=4"], True)
    assert len(composed) == 4
    assert faults == []
    assert first is not None
    assert again is not None
    for one, other in zip(first.arms, again.arms, strict=True):
        assert other.seed == 4
        assert OmegaConf.to_yaml(one).replace("seed: 3", "seed: 4").replace("seed=3", "seed=4") == \
            OmegaConf.to_yaml(other)


@pytest.mark.slow
@pytest.mark.parametrize("experiment", options("exp"))
def test_each_experiment_is_kept_as_it_is_composed_and_has_the_arms_of_its_contrasts(
        experiment: str, composed: list[str]) -> None:
    made, again = (composition.composition(composition.CONFIG, [f"+exp={experiment}"]) for _ in range(2))
    assert len(composed) == 1
    assert made == again
    assert [*made] == [*again]  # in the same order
    config, wrong = compose_arm([f"+exp={experiment}"])
    assert (composed, wrong) == (["config", None], {})  # Hydra's own settings
    named = {name for one in config.contrasts for name in (one.arm, one.comparator)} - {*NAMES, "twin"}
    assert [name for name in named if not experiment_arms(config).fullmatch(name)] == []


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize("change", [
    lambda conf: edit(conf / "config.yaml", "seed: 0", "seed: 7"),
    lambda conf: edit(conf / "techniques.yaml", "\n  gap:\n", "\n  gap:  # another remark\n"),
    lambda conf: (conf / "rank" / "select" / "another.yaml").write_text("k: 3\n")])
def test_another_file_is_another_composition(
        change: Callable[[Path], object], conf: Path, composed: list[str]) -> None:
    before = of_config(conf, GAP)
    assert of_config(conf, GAP) == before
    assert len(composed) == 1
    change(conf)
    after = of_config(conf, GAP)
    assert len(composed) == 2
    assert after["seed"] == (7 if "seed: 7" in (conf / "config.yaml").read_text() else 0)


def test_a_file_of_the_same_size_and_time_is_read_by_content(conf: Path, composed: list[str]) -> None:
    path = conf / "config.yaml"
    before, status = of_config(conf, GAP), path.stat()
    edit(path, "seed: 0", "seed: 7")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (before["seed"], of_config(conf, GAP)["seed"]) == (0, 7)
    assert len(composed) == 2


def test_what_is_edited_while_it_is_composed_is_not_kept(
        conf: Path, monkeypatch: pytest.MonkeyPatch, composed: list[str], memlab_home: Path) -> None:
    whole: Any = hydra.compose

    def edited(*args: object, **more: object) -> object:
        edit(conf / "config.yaml", "seed: 0", "seed: 7")
        return whole(*args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(hydra, "compose", edited)
        of_config(conf, GAP)
    assert not (memlab_home / "cache").exists()
    edit(conf / "config.yaml", "seed: 7", "seed: 0")
    assert of_config(conf, GAP)["seed"] == 0
    assert len(composed) == 2


@pytest.mark.parametrize(("lines", "place"), [
    ("defaults: [{override /rank/select: '${oc.env:MINE}'}]", ("runtime", "choices", "rank/select")),
    ("hydra: {job: {env_copy: [MINE]}}", ("job", "env_set", "MINE"))])
def test_a_variable_that_hydra_reads_is_read_each_time(
        lines: str, place: tuple[str, ...], conf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (conf / "exp" / "mine.yaml").write_text(f"# @package _global_\n{lines}\n")
    for name in ("gap", "budget", "gap"):
        monkeypatch.setenv("MINE", name)
        node = of_config(conf, "+exp=mine")["hydra"]
        for key in place:
            node = node[key]
        assert node == name


def test_a_variable_that_a_value_reads_is_read_each_time(monkeypatch: pytest.MonkeyPatch, composed: list[str]) -> None:
    for name in ("one", "two"):
        monkeypatch.setenv("MINE", name)
        forget()
        configs, faults = compose(["name=${oc.env:MINE}"], False)
        assert faults == []
        assert configs is not None
        assert configs.base.name == name
    assert len(composed) == 2  # Hydra's own and the defaults, once


def test_nothing_is_kept_of_files_of_others(tmp_path: Path, composed: list[str]) -> None:
    file = tmp_path / "mine" / "rank" / "select" / "mine.yaml"
    file.parent.mkdir(parents=True)
    for k in (3, 4):
        file.write_text(f"_target_: memlab.rank.select.Fixed\nk: {k}\n")
        forget()
        configs, faults = compose([f"conf_dir={tmp_path / 'mine'}", "rank/select=mine"], False)
        assert faults == []
        assert configs is not None
        assert configs.base.rank.select.k == k
    assert composed.count(composition.CONFIG) == 2
    choices.use([], CONF)


def test_a_damaged_file_is_composed_again(memlab_home: Path, composed: list[str]) -> None:
    made = composition.composition(composition.CONFIG, [GAP])
    (path,) = (memlab_home / "cache").iterdir()
    path.write_bytes(encode_line({"result": {}})[:-1])
    assert composition.composition(composition.CONFIG, [GAP]) == made
    assert composition.composition(composition.CONFIG, [GAP]) == made
    assert len(composed) == 2
