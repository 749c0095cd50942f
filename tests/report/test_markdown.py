from __future__ import annotations

import re

import polars as pl

from memlab.experiment.harness.results import ArmRun, finished_arms
from memlab.report.build import ReportFiles
from memlab.report.markdown import LISTED, document, escape
from memlab.report.view_model import ReportView


def test_every_table_row_has_as_many_cells_as_its_head(report: ReportFiles) -> None:
    cells = 0
    for line in report.markdown.read_text().splitlines():
        if line.startswith("|"):
            here = len(re.findall(r"(?<!\\)\|", line)) - 1
            assert cells in (0, here), line
            cells = here
        else:
            cells = 0


def test_figures_and_findings_are_those_of_the_comparison(report: ReportFiles) -> None:
    text = report.markdown.read_text()
    metric = report.comparison["arms"]["fixed_10"]["metrics"]["selected/session/recall_all"]
    low, high = (f"{100 * metric[end]:.1f}" for end in ("low", "high"))
    assert f"{100 * metric['value']:.1f} % ({low} to {high})" in text
    for contrast in report.comparison["contrasts"]:
        assert f"**{escape(contrast['words'])}**" in text
    titles = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert titles == ["Verdict", "Evidence against tokens", "All arms", "Where they differ", "Contrasts",
                      "By question type", "Reliability of learned estimates", "Feature importances", "Cost and latency",
                      "Settings", "Statistics", "Provenance"]


def test_foreign_text_stays_in_its_cell(report: ReportFiles, arms: tuple[ArmRun, ...]) -> None:
    comparison = report.comparison | {"notes": ["a|b\n# head <script> `x` \x1b[31m [link](x)"], "contrasts": [
        report.comparison["contrasts"][0] | {"arm": "gap", "comparator": "fixed_5"}]}
    text = document(ReportView(comparison, arms))
    assert "\n* a\\|b # head &lt;script&gt; \\`x\\` \\\\x1b\\[31m \\[link\\](x)\n" in text
    assert "<script>" not in text
    assert "\x1b" not in text


def test_the_questions_named_are_those_on_which_the_two_arms_differ(report: ReportFiles) -> None:
    text = report.markdown.read_text().split("## Where they differ")[1].split("\n## ")[0]
    pair = report.view.pair
    assert pair is not None
    one, two = (next(a.questions for a in finished_arms(report.html.parent).arms if a.name == name)
                for name in (pair.arm, pair.other))
    both = one.join(two, on="question").filter(pl.col(pair.metric) != pl.col(f"{pair.metric}_right"))
    assert set(map(int, re.findall(r"^\| (\d+) \|", text, re.M))) <= set(both["question"])
    assert len(re.findall(r"^\| \d+ \|", text, re.M)) == min(LISTED, both.height) > 0
