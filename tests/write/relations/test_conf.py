"""Every technique of write/relate and write/prune makes its stage, with the defaults of its class."""

from __future__ import annotations

import dataclasses

import pytest
from omegaconf import OmegaConf

from memlab.config.instantiate import choice_settings, construct
from memlab.stage import Stage
from tests.choices import choices_of, comment
from tests.search.world import WordEmbedder


@pytest.mark.parametrize("name", choices_of("write/relate", "write/prune"))
def test_a_choice_makes_its_stage_with_the_defaults_of_its_class(name: str) -> None:
    whole = OmegaConf.create({"embedder": "EMBEDDER", "this": choice_settings(name)})
    values, faults = OmegaConf.to_container(whole, resolve=True)["this"], list[str]()
    if "embedder" in values:
        values["embedder"] = WordEmbedder()
    made = construct(values, "write", faults)
    assert not faults
    assert isinstance(made, Stage)
    assert {f.name for f in dataclasses.fields(made)} >= set(values) - {"_target_"}
    alone = {"embedder": values["embedder"]} if "embedder" in values else {}
    if not name.endswith("_corrected"):
        assert made == type(made)(**alone)
    assert comment(name)
