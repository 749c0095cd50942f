"""The slots of the pipeline, and all that other modules derive from their order."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import pytest
from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf

from memlab.cluster.shards import LAST_WRITTEN
from memlab.config.ablation import PARTS
from memlab.config.choices import EMPTY, register, stamps
from memlab.config.instantiate import CONF, construct, options
from memlab.harness.plan import CHEAP
from memlab.harness.sweep import PLACES
from memlab.live.session_tables import ENCODING
from memlab.pipeline import Pipeline
from memlab.slots import LANES, LAST_RANKED, PER_SESSION, SLOTS, Slot
from memlab.stage import EmptyStage

ADDED = {
    "context": 'Slot("write.ground", "ground", scope="session")',
    "dense": 'Slot("query.rewrite", "rewrite")',
    "score": '_search("sparse")',
    "fuse": 'Slot("rank.diversify", "diversify")',
    "select": 'Slot("read.weigh", "weigh")',
    "attribute": 'Slot("explain", "explain", scope="all", part=None, judges=True)',
}
"""Slot -> a line that declares another slot before it."""

DERIVED = """
import json, sys, types
import memlab
slots, pipeline = json.load(sys.stdin)
for name, source in (("slots", slots), ("pipeline", pipeline)):
    module = types.ModuleType(f"memlab.{name}")
    sys.modules[f"memlab.{name}"] = module
    setattr(memlab, name, module)
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)
from memlab import slots
from memlab.config.ablation import PARTS
from memlab.config.choices import EMPTY
from memlab.harness.sweep import PLACES
from memlab.harness.plan import CHEAP
from memlab.live.session_tables import ENCODING
print(json.dumps({
    "stages": [name for name, _ in module.Pipeline().stages()], "places": PLACES, "parts": PARTS, "cheap": CHEAP,
    "encoding": ENCODING, "per_session": slots.PER_SESSION, "lanes": slots.LANES, "after": slots.AFTER_ANSWERS,
    "last": [slots.LAST_WRITTEN, slots.LAST_RANKED], "empty": module.Pipeline().without("sparse").sparse.writes,
    "none": EMPTY}))
"""


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


def test_a_line_and_a_field_add_a_slot_everywhere() -> None:
    slots, pipeline = ((CONF.parent / "memlab" / f"{name}.py").read_text("utf-8") for name in ("slots", "pipeline"))
    new = {slot: line.split('"')[-2 if "_search" in line else 3] for slot, line in ADDED.items()}
    for slot, line in ADDED.items():
        place = next(row for row in slots.splitlines() if row.startswith("    ") and f'"{slot}"' in row)
        slots = slots.replace(place, f"    {line},\n{place}")
        field = f"    {slot}: Stage = "
        pipeline = pipeline.replace(field, f'    {new[slot]}: Stage = slot("{new[slot]}")\n{field}')
    told = subprocess.run([sys.executable, "-c", DERIVED], input=json.dumps([slots, pipeline]), capture_output=True,
                          text=True, check=True)
    made = json.loads(told.stdout)
    names = [name for slot in SLOTS for name in (new.get(slot.name), slot.name) if name]
    assert made["stages"] == names
    assert list(made["places"]) == [*names, "tokens"]
    assert made["places"]["ground"] == "write.ground"
    assert {"ground", "rewrite", "diversify", "weigh"} == set(made["parts"]) - set(PARTS)
    for part in ("lanes", "search", "find"):
        assert set(made["parts"][part]) - set(PARTS[part]) == {"search.sparse"}
    assert set(made["cheap"]) - set(CHEAP) == {"ground", "rewrite"}
    assert set(made["encoding"]) - set(ENCODING) == {"sparse"}
    assert set(made["per_session"]) - set(PER_SESSION) == {"ground"}
    assert made["lanes"] == [*LANES, "sparse"]
    assert made["last"] == ["rewrite", "weigh"]
    assert made["after"] == ["judge", "explain", "attribute"]
    assert made["empty"] == ["hits"]
    assert {group for group in made["none"] if group not in EMPTY} == {
        "write/ground", "query/rewrite", "search/sparse", "rank/diversify", "read/weigh", "explain"}
