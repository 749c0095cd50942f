"""The slots of the pipeline, and all that other modules derive from their order."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import pytest
from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf

from memlab.cluster.precompute import LAST_WRITTEN
from memlab.config.ablation import PARTS
from memlab.config.empty import EMPTY
from memlab.config.instantiate import CONF, construct, options
from memlab.harness.build import PLACES
from memlab.harness.plan import CHEAP
from memlab.live.working_set import ENCODING
from memlab.pipeline import LANES, LAST_RANKED, PER_SESSION, SLOTS, Pipeline, Slot
from memlab.rank.score import SEARCHES
from memlab.stage import Nothing

ADDED = {
    "context": 'ground: Stage = slot("write.ground", scope="session")',
    "dense": 'rewrite: Stage = slot("query.rewrite")',
    "score": 'sparse: Stage = slot("search.sparse", empty=("hits",), part="lanes")',
    "fuse": 'diversify: Stage = slot("rank.diversify")',
    "select": 'weigh: Stage = slot("read.weigh")',
    "attribute": 'explain: Stage = slot("explain", scope="all", part=None, judges=True)',
}
"""Slot -> a line that declares another slot before it."""

DERIVED = """
import json, sys, types
import memlab
module = types.ModuleType("memlab.pipeline")
sys.modules["memlab.pipeline"] = memlab.pipeline = module
exec(compile(sys.stdin.read(), "pipeline.py", "exec"), module.__dict__)
from memlab.config.ablation import PARTS
from memlab.config.empty import EMPTY
from memlab.harness.build import PLACES
from memlab.harness.plan import CHEAP
from memlab.live.working_set import ENCODING
print(json.dumps({
    "stages": [name for name, _ in module.Pipeline().stages()], "places": PLACES, "parts": PARTS, "cheap": CHEAP,
    "encoding": ENCODING, "per_session": module.PER_SESSION, "lanes": module.LANES, "after": module.AFTER_ANSWERS,
    "last": [module.LAST_WRITTEN, module.LAST_RANKED], "empty": module.Pipeline().without("sparse").sparse.writes,
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
    assert (*PER_SESSION, "query", "classify", "decompose", "expand", "time") == CHEAP
    assert ("relate", "prune", *LANES) == ENCODING
    assert (LAST_WRITTEN, LAST_RANKED) == ("time", "measure")
    assert LANES == ("dense", "lexical", "late", "iterate", "neighbours")
    assert SEARCHES == LANES  # rank/score cannot import the table
    assert {name for name, places in PARTS.items() if len(places) > 1} == {"lanes", "search", "rollup", "find"}
    assert {slot.name for slot in SLOTS} - {*PARTS} == {"query", *LANES, "measure", "answer", "judge", "attribute"}


@pytest.mark.parametrize("slot", SLOTS, ids=lambda slot: slot.name)
def test_none_in_the_configuration_is_the_empty_slot(slot: Slot) -> None:
    if slot.config.replace(".", "/") in EMPTY:
        node = ConfigStore.instance().load(f"{slot.config.replace('.', '/')}/none.yaml").node
        none = construct(OmegaConf.to_container(node), slot.config, [])
        assert "none" in options(slot.config)
        assert none == slot.nothing() == getattr(Pipeline().without(slot.name), slot.name)
    else:
        assert not isinstance(getattr(Pipeline(), slot.name), Nothing)


def test_one_line_adds_a_slot_everywhere() -> None:
    source = (CONF.parent / "memlab" / "pipeline.py").read_text(encoding="utf-8")
    for slot, line in ADDED.items():
        source = source.replace(f"    {slot}: Stage = ", f"    {line}\n    {slot}: Stage = ")
    told = subprocess.run([sys.executable, "-c", DERIVED], input=source, capture_output=True, text=True, check=True)
    made = json.loads(told.stdout)
    new = {slot: line.partition(":")[0] for slot, line in ADDED.items()}
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
