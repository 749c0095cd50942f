from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from memlab.report.build import ReportFiles
from memlab.report.console import print_report
from memlab.report.view_model import ReportView


def printed(comparison: dict, width: int, arm: str | None = None, **settings) -> str:
    out = io.StringIO()
    print_report(ReportView(comparison), Console(file=out, width=width, **{"color_system": None, **settings}), arm)
    return out.getvalue()


@pytest.mark.parametrize("width", [60, 80, 160])
def test_verdict_commands_arms_and_contrasts_are_printed_at_any_width(report: ReportFiles, width: int) -> None:
    long, command = "memorystack_fast_corrected_with_a_long_name", f"memlab run {'x' * 200}"
    comparison = json.loads(json.dumps(report.comparison).replace('"gap"', json.dumps(long)))
    text = printed({**comparison, "act": [["run it", command]]}, width)
    assert text.startswith(ReportView(comparison).opening.sentence[:40])
    assert f"run it: {command}\n" in text  # a command is never broken
    assert all(len(line) <= width or command in line for line in text.splitlines())
    said = " ".join(text.split())
    for arm in comparison["arms"]:
        assert arm[:min(len(arm), width // 2)] in said  # a name is whole at 80 columns, and folded below, never cut
    for contrast in comparison["contrasts"]:
        assert contrast["words"] in said
    assert "Not here: budget has no finished run." in said.replace("▌ ", "")
    first = comparison["arms"][long]["metrics"]["selected/session/recall_all"]
    value, low, high = (f"{100 * first[part]:.1f}" for part in ("value", "low", "high"))
    assert f"{value} % ({low} to {high})" in said or width < 80


def test_the_verdict_is_in_colour(report: ReportFiles) -> None:
    text = printed(report.comparison, 80, force_terminal=True, color_system="standard")
    assert text.startswith(("\x1b[1;32m", "\x1b[1;33m"))


def test_one_arm_is_printed_a_figure_a_line(report: ReportFiles) -> None:
    text = printed(report.comparison, 80, "gap")
    for metric in ("session/recall_all@5", "selected/session/recall_all"):
        entry = report.comparison["arms"]["gap"]["metrics"][metric]
        line = next(line for line in text.splitlines() if f" {metric} " in line)
        assert line.split()[1:] == [f"{entry['value']:.3f}", f"{entry['low']:.3f}", "to", f"{entry['high']:.3f}"]
    assert f"Beside it in the report: {len(report.comparison['arms']) - 1} other arms." in text
    assert f"{report.comparison['scored']:,} of them count for retrieval" in " ".join(text.split())


def test_names_are_neither_markup_nor_markdown_nor_escape_sequences(report: ReportFiles) -> None:
    name = "[red]x[/red] **y** <b> \\u001b[31m"
    text = printed(json.loads(json.dumps(report.comparison).replace("gap", name)), 300)
    assert "[red]x[/red] **y** <b> \\x1b[31m" in text
    assert "\x1b" not in text
