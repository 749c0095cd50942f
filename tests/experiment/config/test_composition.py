"""Configurations that Hydra composes are kept on disk until something that they follow from changes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hydra
import pytest

from memlab.evaluate.curves import NAMES
from memlab.experiment.config import choices, composition
from memlab.experiment.config.compose import _compose_files, compose, compose_arm
from memlab.experiment.config.instantiate import CONF, options
from memlab.experiment.config.overrides import parse_all
from memlab.experiment.harness.sweep import experiment_arms
from memlab.support.disk_cache import load_or_make
from tests.experiment.config.files import put

GAP = "rank/select=gap"


@pytest.fixture
def composed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that Hydra has composed since the process has forgotten all."""
    names: list[str] = []
    whole: Any = hydra.compose
    monkeypatch.setattr(hydra, "compose", lambda name, *rest, **more: names.append(name) or whole(name, *rest, **more))
    monkeypatch.setattr(composition, "load_or_make", load_or_make)  # on disk, as outside the tests
    _compose_files.cache_clear()
    return names


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
    first, _ = compose(["rank/select=gap,fixed", "seed=3", "name=${oc.env:HOME}"], True)
    assert len(composed) == 3  # the common part and two arms
    _compose_files.cache_clear()
    again, faults = compose(["rank/select=gap,fixed", "seed=3", "name=${oc.env:HOME}"], True)
    assert len(composed) == 3
    assert faults == []
    assert first is not None
    assert [arm.config for arm in first.arms] == [arm.config for arm in again.arms]


@pytest.mark.nightly
@pytest.mark.parametrize("experiment", options("exp"))
def test_each_experiment_has_the_arms_of_its_contrasts(experiment: str) -> None:
    arm, wrong = compose_arm(parse_all([f"+exp={experiment}"]))
    assert wrong == {}
    named = {name for one in arm.config.contrasts for name in (one.arm, one.comparator)} - {*NAMES, "twin"}
    assert [name for name in named if not experiment_arms(arm.config).fullmatch(name)] == []


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize("change", [
    lambda conf: edit(conf / "config.yaml", "seed: 0", "seed: 7"),
    lambda conf: edit(conf / "techniques.yaml", "\n  gap:\n", "\n  gap:  # another remark\n"),
    lambda conf: (conf / "rank" / "rerank" / "another.yaml").write_text("pool: 3\n")])
def test_another_file_is_another_composition(
        change: Callable[[Path], object], conf: Path, composed: list[str], memlab_home: Path) -> None:
    before = of_config(conf, GAP)
    assert of_config(conf, GAP) == before
    assert len(composed) == 1
    change(conf)
    assert of_config(conf, GAP)["seed"] == (7 if "seed: 7" in (conf / "config.yaml").read_text() else 0)
    assert len(composed) == 2
    for path in (memlab_home / "cache").iterdir():
        path.write_bytes(path.read_bytes()[:-1])  # damaged
    of_config(conf, GAP)
    assert len(composed) == 3


def test_nothing_is_kept_of_files_of_others(tmp_path: Path, composed: list[str], memlab_home: Path) -> None:
    put(tmp_path / "mine", rank__select__mine="_target_: memlab.stages.rank.select.Fixed\n")
    assert compose([f"conf_dir={tmp_path / 'mine'}", "rank/select=mine"], False)[1] == []
    assert composed == [composition.CONFIG]
    assert not (memlab_home / "cache").exists()
