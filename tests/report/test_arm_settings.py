from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from memlab.experiment.config.compose import compose_arm
from memlab.experiment.config.overrides import parse_all
from memlab.experiment.harness.results import ArmRun
from memlab.report import arm_settings
from memlab.report.arm_settings import display_name, slot_names, with_display_names
from memlab.report.build import ReportFiles
from memlab.support.text.display import EMPTY

NONE = {"is": "memlab.EmptyStage", "writes": []}
FIXED = {"is": "memlab.Fixed", "k": 10}


def arm(name: str, tmp_path: Path, config: str = "", slots: dict[str, Any] | None = None
        ) -> ArmRun:
    folder = tmp_path / f"{name}-0"
    folder.mkdir()
    (folder / "config.yaml").write_text(config)
    pipeline = {"is": "memlab.Pipeline", **(slots or {})}
    manifest = {"arm": name, "oracle": False, "tainted": False, "pipeline": pipeline}
    return ArmRun(name, "0", folder, manifest, {})


def test_arms_stand_behind_the_values_of_the_settings_that_differ(tmp_path: Path) -> None:
    text = ("embedder: {dtype: %s}\nrank: {select: {_target_: memlab.stages.rank.select.Fixed, k: %d}}\n"
            "search: {dense: "
            "{embedder: {dtype: %s}, depth: 100}}\nname: %s\ncontrasts: [%s]\n")
    sweep = [arm(name, tmp_path, text % (dtype, k, dtype, name, name))
             for name, dtype, k in (("a", "fp32", 5), ("b", "fp16", 10), ("c", "fp16", 20))]
    assert arm_settings.by_value(sweep) == {  # a model is named by the stage that took it
        "rank.select.k": {"5": ["a"], "10": ["b"], "20": ["c"]},
        "search.dense.embedder.dtype": {"fp32": ["a"], "fp16": ["b", "c"]}}
    assert arm_settings.by_value(sweep[:1]) == {}
    other = arm("d", tmp_path, "rank: {select: {_target_: memlab.pipeline.stage.EmptyStage, writes: [x]}}")
    found = arm_settings.by_value([*sweep, other])
    assert found["rank.select"] == {"fixed": ["a", "b", "c"], "none": ["d"]}
    assert found["rank.select.k"] == {"5": ["a"], "10": ["b"], "20": ["c"], EMPTY: ["all others"]}
    assert "rank.select.writes" not in found


def test_the_page_and_the_document_show_what_differs(report: ReportFiles) -> None:
    settings = report.html.read_text().partition('<details id="settings">')[2].partition("</details>")[0]
    assert re.search(r"<td><b>by_type</b></td><td>by_type</td>", settings)
    assert "| `rank.select` | by_type | by_type |" in report.markdown.read_text().partition("## Settings")[2]


@pytest.mark.parametrize("choice", [
    "rank/select=by_type", "rank/select=adaptive_k_moving_average", "rank/score=rrf", "rank/boost=recency",
    "rank/rerank=late_interaction", "write/chunk=several", "search/dense=none", "rank/rerank=oracle"])
def test_a_technique_is_shown_by_the_name_that_chooses_it(choice: str) -> None:
    part, slot, name = choice.replace("=", "/").split("/")
    arm, wrong = compose_arm(parse_all([choice]))
    assert not wrong
    assert with_display_names(json.loads(json.dumps(plain(arm.config[part][slot]))), slot)["_target_"] == name


def plain(node: Any) -> Any:
    return OmegaConf.to_container(node, resolve=False)


def test_names_of_classes_without_one_choice() -> None:
    made, _ = compose_arm(parse_all(["rank/score=zscore", "rank.score.rrf_k=7"]))
    assert display_name("memlab.stages.rank.score.Score", "score", plain(made.config.rank.score)) == "zscore"
    assert display_name("memlab.stages.rank.score.Score", "score") == "score"  # several files: no guess
    assert display_name("mylab.TrigramSearch", "lexical") == "trigram search"


def test_the_configuration_counts_before_the_manifest(tmp_path: Path) -> None:
    config = "rank: {rerank: {_target_: memlab.stages.oracle.upper_bounds.OracleRerank, pool: 50}}"
    one = arm("a", tmp_path, config, {"rerank": {"is": "memlab.Rerank"}, "select": FIXED})
    assert slot_names(one) == {"rerank": "oracle", "select": "fixed"}


def test_provenance_is_split_into_shared_and_differing_and_shows_no_class(
        tmp_path: Path, arms: tuple[ArmRun, ...]) -> None:
    text = ("rank: {select: {_target_: memlab.stages.rank.select.%s}}\n"
            "write: {chunk: {_target_: memlab.pipeline.stage.EmptyStage}}")
    own = [arm(name, tmp_path, text % name, {"extract": NONE, "select": {"is": f"memlab.{name}"}})
           for name in ("Fixed", "ByType")]
    shared, differing = arm_settings.manifests(own)
    assert differing["pipeline.select"] == {"Fixed": "fixed", "ByType": "by_type"}
    assert not [name for name in [*shared, *differing] if "extract" in name or "writes" in name]  # empty in all arms
    values = [*shared.values(), *(value for row in differing.values() for value in row.values())]
    assert not [value for value in values if "memlab." in value]
    shared, differing = arm_settings.manifests([replace(a, manifest=a.manifest | {"source": "12ab"}) for a in arms])
    assert (shared["versions.torch"], shared["source"]) == ("2.13.0", "12ab")
    assert set(differing["total_seconds"]) == {a.name for a in arms}
    assert not any(name.startswith(("reliability", "constant_k", "importances")) for name in [*shared, *differing])


def test_commands_are_listed_once_in_the_order_of_the_arms(arms: tuple[ArmRun, ...]) -> None:
    runs = [replace(arm, manifest={"command": line}) for arm, line in zip(arms, ("b", "a", "b", None))]
    assert arm_settings.commands(runs) == ["b", "a"]
