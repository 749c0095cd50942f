"""The slots of the pipeline, and all that other modules derive from their order."""

from __future__ import annotations

import dataclasses

import pytest
from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf

from memlab.experiment.cluster.shards import LAST_WRITTEN
from memlab.experiment.config.ablation import PARTS
from memlab.experiment.config.choices import EMPTY, register, stamps
from memlab.experiment.config.instantiate import CONF, construct, options
from memlab.experiment.harness.plan import CHEAP
from memlab.experiment.harness.sweep import PLACES
from memlab.memory.session_tables import ENCODING
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.slots import LANES, LAST_RANKED, PER_SESSION, SLOTS, Slot
from memlab.pipeline.stage import EmptyStage


def test_the_fields_of_the_pipeline_are_its_slots_and_the_token_counter() -> None:
    names = [slot.name for slot in SLOTS]
    assert [*names, "tokens"] == [field.name for field in dataclasses.fields(Pipeline)] == list(PLACES)
    assert [name for name, _ in Pipeline().stages()] == names


def test_config_yaml_names_the_same_slots_in_the_same_order() -> None:
    places = [slot.config.replace(".", "/") for slot in SLOTS]
    groups = [str(key) for entry in OmegaConf.load(CONF / "config.yaml").defaults if entry != "_self_" for key in entry]
    assert [group for group in groups if group in places] == places


def test_what_the_order_of_the_slots_means_today() -> None:
    assert PER_SESSION == ("chunk", "extract", "anchor", "context")
    assert ("where", *PER_SESSION, "query", "classify", "decompose", "expand", "time") == CHEAP
    assert ("relate", "prune", *LANES) == ENCODING
    assert (LAST_WRITTEN, LAST_RANKED) == ("time", "measure")
    assert LANES == ("dense", "lexical", "late", "iterate", "neighbours")
    assert {name for name, places in PARTS.items() if len(places) > 1} == {"lanes", "search", "rollup", "find"}
    assert {slot.name for slot in SLOTS} - {*PARTS} == {"where", "query", *LANES, "measure", "answer", "judge",
                                                         "attribute"}


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
