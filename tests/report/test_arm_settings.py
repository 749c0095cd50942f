from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from memlab.harness.results import ArmRun
from memlab.report import arm_settings
from memlab.report.build import ReportFiles
from memlab.report.html import unpack
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


def test_a_setting_that_an_arm_lacks_is_a_difference_and_no_axis_of_few(sweep: list[ArmRun], tmp_path: Path) -> None:
    arms = [*sweep, *(arm(name, "rank: {select: {tokens: 900}}", tmp_path) for name in ("d", "e", "f"))]
    assert arm_settings.differing(arms)["rank.select.tokens"]["a"] == EMPTY
    assert "rank.select.tokens" not in arm_settings.axes(arms)


def test_axes_have_several_values_and_begin_with_what_all_arms_have(tmp_path: Path) -> None:
    texts = ["{a: {one: 1, same: 5}, b: {name: x, k: 3}}", "{a: {one: 2, same: 5}, b: {name: y, k: 4}}",
             "{b: {name: x, k: 3}}"]
    arms = [arm(name, text, tmp_path) for name, text in zip("abc", texts)]
    assert "a.same" in arm_settings.differing(arms)  # the third arm lacks it
    assert arm_settings.axes(arms) == ["b.k", "b.name", "a.one"]


def test_lines_pass_through_each_arms_settings_tokens_and_metrics(sweep: list[ArmRun]) -> None:
    metrics = {"session/mrr": {"value": 0.5}}
    k = {"selected_k_mean": None}
    comparison = {"contrasts": [], "arms": {
        "a": {"tokens_mean": 100.0, "metrics": metrics, **k},
        "b": {"tokens_mean": 1_300.0, "metrics": {"session/mrr": {"value": 0.75}}, **k},
        "c": {"tokens_mean": 700.0, "metrics": metrics, **k}}}
    figure = arm_settings.parallel(comparison, sweep)
    assert figure is not None
    assert [line["text"] for line in figure["data"]] == [
        ["5", "fp32", "100", "0.500"], ["10", "fp16", "1300", "0.750"], ["20", "fp16", "700", "0.500"]]
    assert figure["data"][1]["y"] == pytest.approx([1 / 3, 1.0, 1.0, 1.0])
    assert figure["data"][2]["y"] == pytest.approx([1.0, 1.0, 0.5, 0.0])


def test_the_page_and_the_document_show_what_differs(report: ReportFiles) -> None:
    html, markdown = report.html.read_text(), report.markdown.read_text()
    assert 'id="chart-settings"' in html
    assert "<b>by_type</b>: by_type" in html.partition('id="settings"')[2].partition("</section>")[0]
    assert "**by_type**: by_type" in markdown.partition("## Settings")[2]
    charts = json.loads(unpack(html.partition('id="charts">')[2].partition("</script>")[0]))
    assert len(charts["settings"]["data"]) == len(report.comparison["arms"])


def test_hostile_names_stay_text(sweep: list[ArmRun]) -> None:
    arms = [replace(sweep[0], name="<b>x</b>"), *sweep[1:]]
    none = {"metrics": {}, "tokens_mean": None, "selected_k_mean": None}
    comparison: dict[str, object] = {"contrasts": [], "arms": {one.name: none for one in arms}}
    figure = arm_settings.parallel(comparison, arms)
    assert figure is not None
    assert "<b>x" not in figure["data"][0]["hovertemplate"]
