from __future__ import annotations

import copy
import io
from pathlib import Path

import polars as pl
import pytest

from memlab.commands.report import main
from memlab.report.build import ReportFiles
from memlab.report.export import csv, latex
from memlab.report.view_model import ReportView


def test_a_table_has_numbers_as_numbers_and_the_ends_of_intervals(report: ReportFiles) -> None:
    table = pl.read_csv(io.StringIO(csv(report.view)))
    assert table["arm"].to_list() == [row.name for row in report.view.rows]
    assert all(kind.is_numeric() for name, kind in table.schema.items() if name not in ("arm", "looks at gold"))
    metric = "selected/session/recall_all"
    for row in table.iter_rows(named=True):
        arm = report.comparison["arms"][row["arm"]]
        assert [row[metric + end] for end in ("", " low", " high")] == pytest.approx(
            [arm["metrics"][metric][end] for end in ("value", "low", "high")])
        assert (row["seconds"], row["looks at gold"]) == (pytest.approx(arm["seconds"]), arm["oracle"])


@pytest.mark.parametrize("name", ["=1+1", "-1+cmd|' /C calc'!A0", "+cmd", "@SUM(1)"])
def test_a_name_that_a_spreadsheet_would_run_is_text(report: ReportFiles, name: str) -> None:
    comparison = copy.deepcopy(report.comparison)
    comparison["arms"] = {name: comparison["arms"]["gap"]}
    comparison["verdict"] = None
    assert pl.read_csv(io.StringIO(csv(ReportView(comparison))))["arm"].to_list() == [f"'{name}"]


def test_latex_has_the_intervals_and_escapes_what_it_would_read(report: ReportFiles) -> None:
    comparison = copy.deepcopy(report.comparison)
    comparison["arms"]["a_b & 50 %"] = comparison["arms"].pop("gap")
    text = latex(ReportView(comparison))
    line = next(line for line in text.splitlines() if line.startswith(r"a\_b \& 50 \% & "))
    estimate = comparison["arms"]["a_b & 50 %"]["metrics"]["selected/session/recall_all"]
    value, low, high = (f"{100 * estimate[part]:.1f}" for part in ("value", "low", "high"))
    assert rf"{value} {{\scriptsize [{low}, {high}]}}" in line
    assert r"all evidence shown, sessions (\%)" in text
    assert len({row.replace(r"\&", "").count("&") for row in text.splitlines() if row.endswith(r"\\")}) == 1


def test_the_command_writes_both_beside_the_report(runs: Path) -> None:
    assert main([str(runs), "--csv", "--latex"]) == 0
    assert (runs / "report.csv").read_text().startswith("arm,")
    assert (runs / "report.tex").read_text().startswith(r"\begin{tabular}")
