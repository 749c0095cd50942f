"""Defaults of classes: no file restates one, and parts get those that they leave out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from omegaconf import MISSING

from memlab.experiment.config import instantiate
from memlab.experiment.config.choices import own_choices
from memlab.learn.coverage import LoadedCoverage
from memlab.support.errors import MemlabError


def test_a_misspelt_data_set_or_field_of_one_is_named() -> None:
    with pytest.raises(MemlabError, match="did you mean 'lives'"):
        instantiate.make_dataset("synthetic", livs=2)
    with pytest.raises(MemlabError, match="there is no dataset 'sinthetic'. Fix: did you mean 'synthetic'"):
        instantiate.make_dataset("sinthetic")


def test_defaults_are_plain_values_and_objects_are_parts() -> None:
    assert instantiate.class_defaults(LoadedCoverage)["path"] == "???"
    stated = {"_target_": "memlab.stages.search.dense.Dense", "index": {"device": "cpu"}, "depth": 7}
    dense = instantiate.with_defaults(stated)
    assert dense["index"] == {"_target_": "memlab.stages.search.exact.Flat", "device": "cpu", "block": 65536}
    assert (dense["depth"], dense["kinds"]) == (7, None)
    assert instantiate.with_defaults({"_target_": "os.system", "x": 1}) == {"_target_": "os.system", "x": 1}
    assert instantiate.with_defaults([{"_target_": "memlab.stages.rank.select.Fixed", "kk": 1}]) == [
        {"_target_": "memlab.stages.rank.select.Fixed", "k": 10, "kk": 1}]


def restated(node: Any, where: str) -> Iterator[str]:
    """Name the settings of a configuration node that have their class's default."""
    if isinstance(node, list):
        for i, item in enumerate(node):
            yield from restated(item, f"{where}[{i}]")
    if isinstance(node, dict):
        cls = instantiate.find_class(str(node["_target_"]), "", []) if "_target_" in node else None
        defaults = instantiate.class_defaults(cls) if cls else {}
        for key, value in node.items():
            if value == MISSING:
                continue  # shows that a value must be given
            whole = instantiate.with_defaults(value)
            if key in defaults and whole == defaults[key] and type(value) is type(defaults[key]):
                yield f"{where}.{key}"
            else:
                yield from restated(value, f"{where}.{key}")


def test_no_key_repeats_the_default_of_its_class() -> None:
    """A file that builds on others, or is put over them, may set a default again: it overrides the others."""
    alone = {name: instantiate.choice_settings(name) for name, choice in own_choices(instantiate.CONF).items()
             if choice.settings is not None or "# @package" not in choice.path.read_text(encoding="utf-8")}
    assert len(alone) > 200
    assert [key for name, content in alone.items() if "defaults" not in content and not name.startswith("arm/")
            for key in restated(content, name)] == []
