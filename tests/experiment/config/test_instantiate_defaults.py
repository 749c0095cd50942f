"""A file need not state what its class has as default: arms, their digests and their config.yaml are the same."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from omegaconf import MISSING, OmegaConf

from memlab.experiment.config import compose, composition, instantiate, overrides
from memlab.experiment.config.choices import own_choices
from memlab.experiment.config.instantiate import (
    CONF,
    choice_settings,
    class_defaults,
    find_class,
    make_dataset,
    with_defaults,
)
from memlab.experiment.harness.sweep import read
from memlab.learn.coverage import LoadedCoverage
from memlab.support.errors import MemlabError
from tests.small import LIVES


def without_defaults(node: Any) -> Any:
    """Leave out what the class has as default; a dictionary with entries stays, since presets add entries to it."""
    if isinstance(node, list):
        return [without_defaults(item) for item in node]
    if not isinstance(node, dict):
        return node
    cls = find_class(str(node["_target_"]), "", []) if "_target_" in node else None
    defaults = class_defaults(cls) if cls else {}
    return {key: without_defaults(value) for key, value in node.items()
            if key not in defaults or value != defaults[key] or (isinstance(value, dict) and value)}


def rewritten(folder: Path, change: Callable[[Any], Any]) -> Path:
    """Copy the configuration with each part changed; what is put over another file stays as it is."""
    shutil.copytree(CONF, folder)
    table = folder / "techniques.yaml"
    techniques: Any = OmegaConf.to_container(OmegaConf.load(table))
    OmegaConf.save(OmegaConf.create({slot: {name: settings if "defaults" in settings else change(settings)
                                            for name, settings in entries.items()}
                                     for slot, entries in techniques.items()}), table)
    for path in sorted({*folder.rglob("*.yaml")} - {table}):
        text = path.read_text(encoding="utf-8")
        if "# @package" not in text and "defaults:" not in text:
            OmegaConf.save(OmegaConf.create(change(OmegaConf.to_container(OmegaConf.load(path)))), path)
    return folder


WORDS = [
    ("-m", "rank/select=gap,fixed,budget", "search.dense.depth=50,100"),
    ("system=memorystack", "rank/rerank=late_interaction"),
    pytest.param(("-m", "system=oltramem", "ablate=whole,plain,whole-chunk,plain+score"), marks=pytest.mark.nightly)]


@pytest.mark.slow
@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("change", [without_defaults, with_defaults])
def test_what_a_file_restates_changes_no_arm(words: tuple[str, ...], change: Callable[[Any], Any], tmp_path: Path,
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    def arms() -> list[tuple[str, str, str]]:
        line = [word for word in words if word != "-m"]
        return [(arm.name, arm.digest(), arm.config) for arm in read([*LIVES, *line], "-m" in words).arms]

    before = arms()
    other = rewritten(tmp_path / "conf", change)
    for module in (compose, composition, instantiate, overrides):
        monkeypatch.setattr(module, "CONF", other)
    assert arms() == before


def test_data_sets_are_made_by_name_with_other_fields() -> None:
    assert make_dataset("synthetic", lives=2).lives == 2
    with pytest.raises(MemlabError, match="did you mean 'lives'"):
        make_dataset("synthetic", livs=2)
    with pytest.raises(MemlabError, match="there is no dataset 'sinthetic'. Fix: did you mean 'synthetic'"):
        make_dataset("sinthetic")


def test_defaults_are_plain_values_and_objects_are_parts() -> None:
    assert class_defaults(LoadedCoverage)["path"] == "???"
    dense = with_defaults({"_target_": "memlab.stages.search.dense.Dense", "index": {"device": "cpu"}, "depth": 7})
    assert dense["index"] == {"_target_": "memlab.stages.search.exact.Flat", "device": "cpu", "block": 65536}
    assert (dense["depth"], dense["kinds"]) == (7, None)
    assert with_defaults({"_target_": "os.system", "x": 1}) == {"_target_": "os.system", "x": 1}
    assert with_defaults([{"_target_": "memlab.stages.rank.select.Fixed", "kk": 1}]) == [
        {"_target_": "memlab.stages.rank.select.Fixed", "k": 10, "kk": 1}]


def restated(node: Any, where: str) -> Iterator[str]:
    """Name the settings of a configuration node that have their class's default."""
    if isinstance(node, list):
        for i, item in enumerate(node):
            yield from restated(item, f"{where}[{i}]")
    if isinstance(node, dict):
        cls = find_class(str(node["_target_"]), "", []) if "_target_" in node else None
        defaults = class_defaults(cls) if cls else {}
        for key, value in node.items():
            if value == MISSING:
                continue  # shows that a value must be given
            if key in defaults and with_defaults(value) == defaults[key] and type(value) is type(defaults[key]):
                yield f"{where}.{key}"
            else:
                yield from restated(value, f"{where}.{key}")


def test_no_key_repeats_the_default_of_its_class() -> None:
    """A file that builds on others, or is put over them, may set a default again: it overrides the others."""
    alone = {name: choice_settings(name) for name, choice in own_choices(CONF).items()
             if choice.settings is not None or "# @package" not in choice.path.read_text(encoding="utf-8")}
    assert len(alone) > 200
    assert [key for name, content in alone.items() if "defaults" not in content and not name.startswith("arm/")
            for key in restated(content, name)] == []


def test_a_restated_default_is_named() -> None:
    node = {"_target_": "memlab.stages.search.dense.Dense", "depth": 7,
            "index": {"_target_": "memlab.stages.search.exact.Flat"}}
    assert list(restated(node, "x")) == ["x.index"]
    assert list(restated([{"_target_": "memlab.stages.rank.select.Fixed", "k": 10}], "y")) == ["y[0].k"]
