from __future__ import annotations

import re

from memlab.harness.results import ArmRun
from memlab.report.build import ReportFiles
from memlab.report.markdown import document, escape


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
    assert f"{metric['value']:.3f} ({metric['low']:.3f} to {metric['high']:.3f})" in text
    for contrast in report.comparison["contrasts"]:
        assert f"**{escape(contrast['words'])}**" in text
    for title in ("Finding", "Arms", "By question type", "Recall against context tokens", "Reliability",
                  "Questions on which the arms differ", "Provenance"):
        assert f"\n## {title}" in text


def test_foreign_text_stays_in_its_cell(report: ReportFiles, arms: tuple[ArmRun, ...]) -> None:
    comparison = report.comparison | {"notes": ["a|b\n# head <script> `x` \x1b[31m [link](x)"], "contrasts": [
        report.comparison["contrasts"][0] | {"arm": "gap", "comparator": "fixed_5"}]}
    text = document(comparison, arms)
    assert "\n* a\\|b # head &lt;script&gt; \\`x\\` ⟨U+001B⟩\\[31m \\[link\\](x)\n" in text
    assert "<script>" not in text
    assert "\x1b" not in text


def test_the_questions_named_are_those_on_which_the_two_arms_differ(report: ReportFiles) -> None:
    text = report.markdown.read_text().split("### gap against fixed_10")[1].split("### ")[0]
    contrast = report.comparison["contrasts"][0]
    assert len(re.findall(r"^\| \d+ \|", text, re.M)) == contrast["wins"] + contrast["losses"]
