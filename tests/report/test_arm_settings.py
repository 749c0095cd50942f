from __future__ import annotations

import re
from pathlib import Path

import pytest

from memlab.harness.results import ArmRun
from memlab.report import arm_settings
from memlab.report.build import ReportFiles
from memlab.text.display import EMPTY


def arm(name: str, config: str, tmp_path: Path) -> ArmRun:
    folder = tmp_path / f"{name}-0"
    folder.mkdir()
    (folder / "config.yaml").write_text(config)
    return ArmRun(name, "0", folder, {"pipeline": {}, "oracle": False, "tainted": False}, {})


@pytest.fixture
def sweep(tmp_path: Path) -> list[ArmRun]:
    text = ("embedder: {dtype: %s}\nrank: {select: {_target_: memlab.rank.select.Fixed, k: %d}}\nsearch: {dense: "
            "{embedder: {dtype: %s}, depth: 100}}\nname: %s\ncontrasts: [%s]\n")
    return [arm(name, text % (dtype, k, dtype, name, name), tmp_path)
            for name, dtype, k in (("a", "fp32", 5), ("b", "fp16", 10), ("c", "fp16", 20))]


def test_only_what_differs_is_named_and_a_model_by_the_stage_that_took_it(sweep: list[ArmRun]) -> None:
    assert arm_settings.differing(sweep) == {"rank.select.k": {"a": "5", "b": "10", "c": "20"},
                                         "search.dense.embedder.dtype": {"a": "fp32", "b": "fp16", "c": "fp16"}}
    assert arm_settings.differing(sweep[:1]) == {}


def test_for_reading_arms_stand_behind_their_values(sweep: list[ArmRun], tmp_path: Path) -> None:
    other = arm("d", "rank: {select: {_target_: memlab.stage.EmptyStage, writes: [x]}}", tmp_path)
    told = arm_settings.by_value([*sweep, other])
    assert told["rank.select"] == {"fixed": ["a", "b", "c"], "none": ["d"]}
    assert told["rank.select.k"] == {"5": ["a"], "10": ["b"], "20": ["c"], EMPTY: ["all others"]}
    assert "rank.select.writes" not in told
    assert told["search.dense.embedder.dtype"] == {"fp32": ["a"], "fp16": ["b", "c"], EMPTY: ["all others"]}


def test_a_setting_that_an_arm_lacks_is_a_difference(sweep: list[ArmRun], tmp_path: Path) -> None:
    arms = [*sweep, *(arm(name, "rank: {select: {tokens: 900}}", tmp_path) for name in ("d", "e", "f"))]
    assert arm_settings.differing(arms)["rank.select.tokens"]["a"] == EMPTY


def test_the_page_and_the_document_show_what_differs(report: ReportFiles) -> None:
    html, markdown = report.html.read_text(), report.markdown.read_text()
    settings = html.partition('<details id="settings">')[2].partition("</details>")[0]
    assert re.search(r"<td><b>by_type</b></td><td>by_type</td>", settings)
    assert "| `rank.select` | by_type | by_type |" in markdown.partition("## Settings")[2]
