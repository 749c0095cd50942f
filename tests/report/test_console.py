from __future__ import annotations

import io
import json
import re

import pytest
from rich.console import Console

from memlab.report.build import ReportFiles
from memlab.report.console import print_arm, print_comparison
from memlab.report.opening import opening


def printed(comparison: dict, width: int) -> str:
    out = io.StringIO()
    print_comparison(comparison, Console(file=out, width=width, color_system=None))
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 100, 160])
def test_every_arm_and_every_contrast_is_printed_at_any_width(report: ReportFiles, width: int) -> None:
    text = printed(report.comparison, width)
    assert max(map(len, text.splitlines())) <= width
    for arm in report.comparison["arms"]:
        assert f" {arm} " in text
    for contrast in report.comparison["contrasts"]:
        assert contrast["words"].split() == text[text.index(contrast["words"][:30]):].split()[
            :len(contrast["words"].split())]
    assert "Not here: budget has no finished run." in text
    first = report.comparison["arms"]["gap"]["metrics"]["selected/session/recall_all"]
    assert f"{100 * first['value']:.1f} %" in text
    assert f"{100 * first['low']:.1f} to {100 * first['high']:.1f}" in text
    assert "selected/session/recall_all: all evidence shown, sessions, in %\n" in text
    assert "Same ranking" not in text  # which outputs arms share is in the report


def test_the_verdict_comes_first_in_colour_and_names_are_whole_at_80_columns(report: ReportFiles) -> None:
    long = "memorystack_fast_corrected_with_a_long_name"
    comparison = json.loads(json.dumps(report.comparison).replace('"gap"', json.dumps(long)))
    text = printed(comparison, 80)
    assert text.startswith(opening(comparison).sentence[:40])
    assert f" {long} " in text
    out = io.StringIO()
    print_comparison(comparison, Console(file=out, width=80, force_terminal=True, color_system="standard"))
    assert re.match(r"\x1b\[1;3[23]m", out.getvalue())


def test_one_arm_is_printed_a_figure_a_line(report: ReportFiles) -> None:
    out = io.StringIO()
    print_arm(report.comparison, "gap", Console(file=out, width=80, color_system=None))
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    for metric in ("session/recall_all@5", "selected/session/recall_all"):
        entry = report.comparison["arms"]["gap"]["metrics"][metric]
        line = next(line for line in text.splitlines() if f" {metric} " in line)
        assert re.findall(r"\d\.\d{3}", line) == [f"{entry[k]:.3f}" for k in ("value", "low", "high")]
    assert f"beside it in the report: {len(report.comparison['arms']) - 1} other arms" in text
    assert f"{report.comparison['scored']:,} of them count for retrieval" in text


def test_work_that_all_arms_share_has_a_line_of_its_own(report: ReportFiles) -> None:
    text = printed({**report.comparison, "shared_seconds": 397.0}, 100)
    assert "data, models and indexes, made once for all arms: 6 min 37 s" in text


def test_names_are_neither_markup_nor_escape_sequences(report: ReportFiles) -> None:
    comparison = json.loads(json.dumps(report.comparison).replace("gap", "[red]x[/red] \\u001b[31m"))
    text = printed(comparison, 160)
    assert "[red]x[/red] ⟨U+001B⟩[31m" in text
    assert "\x1b" not in text
