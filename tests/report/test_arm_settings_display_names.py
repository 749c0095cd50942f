"""Display names: the files of conf name techniques, and no class of the code is shown."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memlab.config.compose import compose_arm
from memlab.harness.results import ArmRun
from memlab.report import arm_settings
from memlab.report.arm_settings import display_name, oracle_bases, slot_names, with_display_names

EMPTY = {"is": "memlab.EmptyStage", "writes": []}
FIXED = {"is": "memlab.Fixed", "k": 10}


def arm(name: str, tmp_path: Path, slots: dict[str, Any] | None = None, *, oracle: bool = False,
        config: str = "") -> ArmRun:
    folder = tmp_path / f"{name}-0"
    folder.mkdir()
    (folder / "config.yaml").write_text(config)
    pipeline = {"is": "memlab.Pipeline", **(slots or {})}
    told = {"arm": name, "oracle": oracle, "tainted": False, "looks_at_gold": ["rerank"] * oracle, "pipeline": pipeline}
    return ArmRun(name, "0", folder, told, {})


@pytest.mark.parametrize("chosen", [
    "rank/select=by_type", "rank/select=adaptive_k_moving_average", "rank/score=rrf", "rank/boost=recency",
    "rank/rerank=late_interaction", "write/chunk=several", "search/dense=none", "rank/rerank=oracle"])
def test_a_technique_is_shown_by_the_name_that_chooses_it(chosen: str) -> None:
    group, _, name = chosen.partition("=")
    part, _, slot = group.partition("/")
    config, wrong = compose_arm([chosen])
    assert not wrong
    assert with_display_names(json.loads(json.dumps(plain(config[part][slot]))), slot)["_target_"] == name


def plain(node: Any) -> Any:
    from omegaconf import OmegaConf

    return OmegaConf.to_container(node, resolve=False)


def test_another_value_of_a_setting_does_not_change_the_name() -> None:
    config, _ = compose_arm(["rank/score=zscore", "rank.score.rrf_k=7"])
    assert display_name("memlab.rank.score.Score", "score", plain(config.rank.score)) == "zscore"
    assert display_name("memlab.rank.score.Score", "score") == "score"  # several files: no guess without settings


def test_a_class_from_elsewhere_is_named_by_its_words() -> None:
    assert display_name("mylab.TrigramSearch", "lexical") == "trigram search"


def test_provenance_leaves_out_what_is_empty_in_all_arms(tmp_path: Path) -> None:
    arms = [arm("a", tmp_path, {"extract": EMPTY, "rerank": EMPTY, "select": FIXED}),
            arm("b", tmp_path, {"extract": EMPTY, "rerank": {"is": "memlab.OracleRerank", "pool": 50},
                                "select": FIXED})]
    shared, differing = arm_settings.manifests(arms)
    assert {name: text for name, text in shared.items() if name.startswith("pipeline")} == {
        "pipeline.select": "fixed", "pipeline.select.k": "10"}
    assert differing["pipeline.rerank"] == {"a": "none", "b": "oracle"}
    assert not any("writes" in name for name in [*shared, *differing])


def test_the_configuration_counts_before_the_manifest(tmp_path: Path) -> None:
    config = "rank: {rerank: {_target_: memlab.oracle.upper_bounds.OracleRerank, pool: 50}}"
    one = arm("a", tmp_path, {"rerank": {"is": "memlab.Rerank"}, "select": FIXED}, config=config)
    assert slot_names(one) == {"rerank": "oracle", "select": "fixed"}


def test_an_oracle_is_named_by_the_one_arm_that_it_bounds(tmp_path: Path) -> None:
    oracle = {"is": "memlab.OracleRerank", "pool": 50}
    plain_arm = arm("plain", tmp_path, {"rerank": EMPTY, "select": FIXED})
    other = arm("other", tmp_path, {"rerank": EMPTY, "select": {**FIXED, "k": 5}})
    bound = arm("oracle", tmp_path, {"rerank": oracle, "select": FIXED}, oracle=True)
    assert oracle_bases([plain_arm, other, bound]) == {"oracle": "plain"}
    assert oracle_bases([plain_arm, other]) == {}
    twin = replace(plain_arm, name="other.twin")
    assert oracle_bases([twin, bound]) == {}
    assert oracle_bases([plain_arm, replace(plain_arm, name="same"), bound]) == {}  # of several, none is the one


def test_no_class_is_shown_where_arms_differ(tmp_path: Path) -> None:
    text = "rank: {select: {_target_: memlab.rank.select.%s}}\nwrite: {chunk: {_target_: memlab.stage.EmptyStage}}"
    arms = [arm(name, tmp_path, {"select": {"is": f"memlab.{name}"}}, config=text % name)
            for name in ("Fixed", "ByType", "Gap")]
    assert arm_settings.by_value(arms)["rank.select"] == {"fixed": ["Fixed"], "by_type": ["ByType"], "gap": ["Gap"]}
    shared, differing = arm_settings.manifests(arms)
    values = [*shared.values(), *(value for row in differing.values() for value in row.values())]
    assert not [value for value in values if re.search(r"memlab\.", value)]
