"""Finished runs and comparisons in Python: the report's own figures, and nothing of a text is markup in a notebook."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from memlab import compare, load
from memlab.evaluate.contrast import Contrast
from memlab.report.build import ReportFiles, build
from memlab.support.errors import MemlabError
from tests.sealing import seal


def test_loaded_runs_are_those_of_the_report(made: Path, report: ReportFiles) -> None:
    runs = load(made)
    assert {*runs} == {*report.comparison["arms"]}
    assert runs["gap"].questions.height == report.comparison["questions"]
    assert runs.table()["arm"].to_list() == [*runs]
    first = next(iter(runs.values()))
    assert runs.table(["session/recall_all@5"]).row(0) == (first.name, first.metrics["session/recall_all@5"])
    assert [*load(runs["gap"].folder)] == ["gap"]
    assert "gap" in repr(runs)


def test_a_comparison_has_the_figures_of_the_report(runs: Path) -> None:
    """One order of arms: the first is what others are compared with."""
    expected = json.loads(build(runs).json.read_text())
    compared = compare(runs)
    assert json.loads(json.dumps(compared.comparison)) == expected
    assert compared.contrasts()["words"].to_list() == [row["words"] for row in expected["contrasts"]]
    assert compared.contrasts(exploratory=True).height == len(expected["exploratory"])
    figure = expected["arms"]["gap"]["metrics"]["session/recall_all@5"]
    assert compared.table().filter(arm="gap", metric="session/recall_all@5").row(0)[2:] == (
        figure["value"], figure["low"], figure["high"])
    assert compared.to_latex().startswith(r"\begin{tabular}")
    assert compared.verdict[0] in " ".join(repr(compared).split())  # broken at the width of the page


def test_contrasts_may_be_given(made: Path) -> None:
    runs = load(made)
    compared = compare(runs["gap"], runs["fixed_5"], contrasts=[Contrast("gap", "fixed_5", "session/recall_all@5")])
    assert compared.contrasts().select("arm", "comparator").rows() == [("gap", "fixed_5")]
    assert {*compared.comparison["arms"]} == {"gap", "fixed_5"}


def test_runs_that_do_not_compare_are_refused(made: Path, tmp_path: Path) -> None:
    runs = load(made)
    with pytest.raises(MemlabError, match="several runs are named gap"):
        compare(runs, runs["gap"])
    other = shutil.copytree(runs["gap"].folder, tmp_path / "other" / "gap-1")
    seal(Path(other), arm="mine", dataset="locomo")
    with pytest.raises(MemlabError, match="the runs are on different data: .*locomo"):
        compare(runs, other)
    with pytest.raises(MemlabError, match="no finished run of the arm 'gpa'.*did you mean 'gap'"):
        runs["gpa"]
    with pytest.raises(MemlabError, match="no run has .*'session/recal_all@5'.*did you mean 'session/recall_all@5'"):
        runs.table(["session/recal_all@5"])
    with pytest.raises(MemlabError, match=f"give one of {re.escape(str(made))}"):
        load(made.parents[1])


def test_no_text_is_markup_in_a_notebook(runs: Path) -> None:
    """A hostile name of an arm, and of the experiment."""
    folder = load(runs)["gap"].folder
    seal(folder, arm="<script>alert(1)</script>")
    for page in (load(runs)._repr_html_(), compare(load(runs)["<script>alert(1)</script>"])._repr_html_()):
        assert "&lt;script&gt;alert(1)" in page
        assert not {*re.findall(r"<(\w+)", page)} & {"script", "img", "a"}
