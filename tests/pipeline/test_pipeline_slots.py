"""The slots of the pipeline, and all that other modules derive from their order."""

from __future__ import annotations

import dataclasses

import pytest
from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf

from memlab.experiment.config.choices import EMPTY, register, stamps
from memlab.experiment.config.instantiate import CONF, construct, options
from memlab.experiment.harness.sweep import PLACES
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.slots import SLOTS, Slot
from memlab.pipeline.stage import EmptyStage


def test_the_fields_of_the_pipeline_are_its_slots_and_the_token_counter() -> None:
    names = [slot.name for slot in SLOTS]
    assert [*names, "tokens"] == [field.name for field in dataclasses.fields(Pipeline)] == list(PLACES)
    assert [name for name, _ in Pipeline().stages()] == names


def test_config_yaml_names_the_same_slots_in_the_same_order() -> None:
    places = [slot.config.replace(".", "/") for slot in SLOTS]
    groups = [str(key) for entry in OmegaConf.load(CONF / "config.yaml").defaults if entry != "_self_" for key in entry]
    assert [group for group in groups if group in places] == places


@pytest.mark.parametrize("slot", SLOTS, ids=lambda slot: slot.name)
def test_none_in_the_configuration_is_the_empty_slot(slot: Slot) -> None:
    if slot.config.replace(".", "/") in EMPTY:
        register(CONF, stamps())
        node = ConfigStore.instance().load(f"{slot.config.replace('.', '/')}/none.yaml").node
        none = construct(OmegaConf.to_container(node), slot.config, [])
        assert "none" in options(slot.config)
        assert none == EmptyStage(writes=slot.empty) == getattr(Pipeline().without(slot.name), slot.name)
    else:
        assert not isinstance(getattr(Pipeline(), slot.name), EmptyStage)
