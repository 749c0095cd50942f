"""The W&B Report, saved with the official client to a small server on the loopback device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memlab.commands.report import main
from memlab.experiment.harness.results import finished_arms
from memlab.experiment.track.wandb import run_id
from memlab.report.wandb_report import FILE, sections

pytestmark = pytest.mark.slow

api = pytest.importorskip("wandb_workspaces.reports.v2", reason="pip install wandb-workspaces")


def spec_of(server: Any) -> dict[str, Any]:
    (view,) = server.views.values()
    return json.loads(view["spec"])


def panels(spec: dict[str, Any]) -> list[dict[str, Any]]:
    grids = [b["metadata"] for b in spec["blocks"] if b["type"] == "panel-grid"]
    return [panel for grid in grids for panel in grid["panelBankSectionConfig"]["panels"]]


def test_the_report_is_complete_and_its_panels_show_the_arms_of_the_comparison(runs: Path, server: Any) -> None:
    assert main([str(runs), "--wandb", "team/memory"]) == 0
    spec, arms = spec_of(server), finished_arms(runs).arms
    headings = [b["children"][0]["text"] for b in spec["blocks"] if b["type"] == "heading"]
    assert headings == [line.removeprefix("## ") for line in (runs / "report.md").read_text().splitlines()
                        if line.startswith("## ")]
    found = panels(spec)
    kinds = [panel["viewType"] for panel in found]
    assert {"Bar Chart", "Scatter Plot", "Run Comparer"} == set(kinds)
    (scatter, *_) = [p["config"] for p in found if p["viewType"] == "Scatter Plot"]
    assert scatter["xAxis"] == "summary:context/tokens_mean"
    assert scatter["yAxis"] == "summary:selected/session/recall_all"
    bars = [m for p in found if p["viewType"] == "Bar Chart" for m in p["config"]["metrics"]]
    assert "summary_metrics.selected/session/recall_all" in bars
    ids = {run_id(arm.folder) for arm in arms}
    assert ids == set(server.runs)
    for grid in (b["metadata"] for b in spec["blocks"] if b["type"] == "panel-grid"):
        (runset,) = grid["runSets"]
        assert set(runset["filters"]["filters"][0]["value"]) == ids
        assert runset["project"]["entityName"] == "team"
    local, text = sections((runs / "report.md").read_text()), {
        b["content"] for b in spec["blocks"] if b["type"] == "markdown-block"}
    assert {local["Verdict"], local["All arms"], local["Contrasts"], local["Settings"]} <= text
    assert not [mark for mark in ("<script", "<img", "\x1b") if mark in "".join(text)]
    known = {name for run in server.runs.values() for name in json.loads(run["summaryMetrics"])}
    assert {m.removeprefix("summary_metrics.") for m in bars} <= known


def test_publishing_again_updates_the_same_report_and_sends_no_arm_twice(runs: Path, server: Any) -> None:
    assert main([str(runs), "--wandb", "team/memory"]) == 0
    first = json.loads((runs / FILE).read_text())
    sent = len(server.named("RunResumeStatus"))
    assert main([str(runs), "--wandb", "team/memory"]) == 0
    assert len(server.named("RunResumeStatus")) == sent == len(finished_arms(runs).arms)
    assert (list(server.views), json.loads((runs / FILE).read_text())) == ([first["id"]], first)
    (view,) = server.views.values()
    assert len(view["displayName"]) <= 128



def test_a_server_that_refuses_is_told_and_the_local_report_stands(
        runs: Path, server: Any, capsys: pytest.CaptureFixture[str]) -> None:
    server.broken = "upsertView"
    assert main([str(runs), "--wandb", "team/memory"]) == 1
    assert "the W&B Report was not published" in capsys.readouterr().err
    assert (runs / "report.html").exists()
    assert not (runs / FILE).exists()


@pytest.mark.parametrize("place", ["team", "team/", "/memory", "a/b/c"])
def test_a_place_that_is_none_is_refused(runs: Path, place: str) -> None:
    with pytest.raises(SystemExit):
        main([str(runs), "--wandb", place])
