"""From configuration to objects: everything that is wrong is told at once, and only memlab's classes are made."""

from __future__ import annotations

from typing import Any

import pytest
from omegaconf import OmegaConf

from memlab.experiment.config.instantiate import construct, options, part
from memlab.experiment.harness.sweep import PLACES, build, read
from memlab.stages.rank.select import Fixed
from memlab.stages.write.chunk import Levels
from memlab.support.errors import Faults

FIXED = "memlab.stages.rank.select.Fixed"


def faults_of(node: Any) -> list[str]:
    faults: list[str] = []
    assert construct(node, "rank.select", faults) is None
    return faults


def test_an_object_and_its_parts_are_made() -> None:
    faults: list[str] = []
    assert construct({"_target_": FIXED, "k": 3}, "rank.select", faults) == Fixed(k=3)
    nested = {"_target_": "memlab.stages.write.chunk.Levels", "chunkers": [
        {"_target_": "memlab.stages.write.chunk.TurnChunker", "roles": ["user"], "speakers": True}]}
    made = construct(nested, "write.chunk", faults)
    assert isinstance(made, Levels)
    assert made.chunkers[0].kind == "turn.user"
    assert faults == []


@pytest.mark.parametrize(("node", "expected"), [
    ({"_target_": FIXED, "kk": 3}, "rank.select.kk: Fixed has no such setting; did you mean 'k'? (known: k)"),
    ({"_target_": FIXED, "k": 0}, "rank.select.k: Input should be greater than or equal to 1 (given: 0)"),
    ({"_target_": FIXED, "k": "5"}, "rank.select.k: Input should be a valid integer (given: '5')"),
    ({"_target_": FIXED, "k": True}, "rank.select.k: Input should be a valid integer (given: True)"),
    ({"_target_": FIXED, "k": "???"}, "rank.select.k: a value is required, e.g. rank.select.k=..."),
    ({"_target_": "memlab.stages.rank.adaptive_k.TokenMatchedK", "k": "x" * 200}, "xxxx…)"),
    ({"_target_": "memlab.stages.rank.select.Gap", "min_k": 9, "max_k": 3},
     "rank.select: min_k 9 is above max_k 3"),
    ({"_target_": "memlab.learn.coverage.LoadedCoverage"}, "rank.select.path: Field required"),
])
def test_a_fault_names_place_and_what_was_expected(node: dict[str, Any], expected: str) -> None:
    (fault,) = faults_of(node)
    assert expected in fault


def test_a_model_that_cannot_serve_says_what_it_is() -> None:
    with pytest.raises(Faults, match=r"search.dense.embedder: ColbertEmbedder cannot serve as Embedder \(A ColBERT "
                                     r"model .*no single vector of a text\). Fix: another choice here, or none"):
        build(read(["embedder=lateon", "search/dense=flat"]))


def test_nothing_but_memlabs_own_parts_is_made() -> None:
    for target in ("os.system", "builtins.eval", "memlabx.evil.Class",
                   "memlab.experiment.harness.arm.Path",
                    "memlab.experiment.config.overrides.Override",  # reached through memlab
                   "memlab.experiment.harness.manifest.subprocess.Popen",
                   "memlab.stages.rank.select.cut", "memlab.stages.rank.select.Fixd", "memlab.nowhere.Class",
                   "memlab.store.store.Store"):  # memlab's, but no part of a configuration
        (fault,) = faults_of({"_target_": target, "args": "touch /tmp/no"})
        assert fault.startswith(f"rank.select._target_: '{target}' ")


def test_faults_of_all_parts_come_together() -> None:
    cfg = read([]).settings
    for key, value in (("rank.select.k", 0), ("read.measure.value", "all"), ("rank.score.level", "word")):
        OmegaConf.update(cfg, key, value)
    OmegaConf.update(cfg, "data", {"_target_": FIXED, "k": 3}, merge=False)
    with pytest.raises(Faults, match="5 faults") as raised:
        build(cfg)
    assert [f.split(":")[0] for f in raised.value.faults] == [
        "rank.score.level", "read.measure.value", "rank.select.k", "read.pack.value", "data"]
    cfg = read([]).settings
    OmegaConf.update(cfg, "rank.select", {"_target_": "memlab.data.synthetic.dataset.Synthetic"}, merge=False)
    with pytest.raises(Faults, match="rank.select: "):
        build(cfg)


def test_a_slot_without_a_choice_lists_the_choices() -> None:
    faults: list[str] = []
    assert part(OmegaConf.create({"rank": {"select": None}}), "rank.select", faults) is None
    assert "nothing is chosen here; choose one of: adaptive_k_gap, adaptive_k_moving_average" in faults[0]
    assert part(OmegaConf.create({"a": "${nowhere}"}), "a", faults) is None
    assert "nowhere" in faults[1]
    assert [place for place in PLACES.values() if not options(place)] == []


def test_a_fault_in_a_borrowed_part_is_named_where_it_can_be_mended() -> None:
    with pytest.raises(Faults) as raised:
        read(["read/answer=reader", "judge=both", "search/dense=none"])
    assert raised.value.faults == ["chat.model: a value is required, e.g. chat.model=...",
                                   "judge_chat.model: a value is required, e.g. judge_chat.model=..."]
