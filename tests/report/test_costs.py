"""Cost and latency in a report: an arm without a chat model costs 0."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memlab.evaluate.costs import price_table
from memlab.experiment.harness.results import ArmRun
from memlab.report.build import ReportFiles
from memlab.report.costs import cost_tables


def with_manifest(arm: ArmRun, **changes: Any) -> ArmRun:
    return replace(arm, manifest=arm.manifest | changes)


REPLIES = {"rerank": {"gpt-4o": {"replies": 60, "prompt_tokens": 60 * 1100, "completion_tokens": 60 * 50,
                                 "seconds": 30.0, "p50": .45, "p95": .912}}}


def test_figures_are_those_of_the_manifest_and_the_prices(report: ReportFiles, arms: tuple[ArmRun, ...]) -> None:
    """Rerank with GPT-4o: 1,100 x 2.5 and 50 x 10 dollars a million, .00325 a question, .195 for sixty."""
    gap = with_manifest(next(a for a in arms if a.name == "gap"), replies=REPLIES, costs={"dense": 6.0, "rerank": .6})
    others = [a for a in arms if a.name != "gap"]
    spent, waits, asked = cost_tables(report.comparison, [gap, *others])
    share = report.comparison["arms"]["gap"]["metrics"]["selected/session/recall_all"]["value"]
    rows = {row[0]: row[1:] for row in spent.rows}
    assert rows["gap"][:5] == ("60", "66,000", "3,000", "0", "0.0033")
    assert rows["gap"][5] == f"{.00325 / share:.4f}"
    assert rows["gap"][6:] == ("–", "0.20", "3,250")  # no judge; sixty questions
    assert rows["fixed_5"] == ("0", "0", "0", "0", "0", "0", "–", "0", "0")
    assert waits.rows == (("gap", "–", "–", "100", "–", "–", "510", "–", "–", "610"),)
    assert asked.rows == (("gap", "rerank", "gpt-4o", "60", "66,000", "3,000", "0.20", "0.45", "0.91"),)


def test_a_model_without_a_price_is_named(report: ReportFiles, arms: tuple[ArmRun, ...]) -> None:
    own = with_manifest(arms[0], replies={"answer": {"Qwen/Qwen2.5-7B": REPLIES["rerank"]["gpt-4o"]}})
    spent = cost_tables(report.comparison, [own])[0]
    assert spent.rows[0][1:] == ("60", "66,000", "3,000", "0", "–", "–", "–", "–", "–")
    assert "No price is known for Qwen/Qwen2.5-7B" in spent.remark
    assert price_table()[0].keys() == {"gpt-4o"}
