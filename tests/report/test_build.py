from __future__ import annotations

import json
import os
import re
import shutil
import time
from pathlib import Path

import pytest

from memlab.commands.report import main
from memlab.evaluate.contrast import Contrast
from memlab.experiment.track.record import NoTracking
from memlab.report.build import RECORD, ReportFiles, build, publish
from memlab.report.console import print_report
from memlab.store import store_at
from memlab.support.errors import MemlabError
from tests.sealing import seal
from tests.small import arm


def test_the_three_files_lie_beside_the_runs_and_agree(report: ReportFiles) -> None:
    folder = report.html.parent
    assert sorted(p.name for p in folder.iterdir() if p.is_file()) == ["comparison.json", "report.html", "report.md"]
    assert json.loads(report.json.read_text()) == report.comparison
    assert report.comparison["experiment"] == "adaptive_k"
    assert report.comparison["missing"] == ["budget"]
    assert [name for name, arm in report.comparison["arms"].items() if arm["oracle"]] == ["oracle"]


def test_contrasts_come_from_the_call_or_else_from_the_config(runs: Path) -> None:
    from_config = build(runs).comparison["contrasts"]
    assert [(c["arm"], c["comparator"]) for c in from_config] == [("gap", "fixed_10"), ("by_type", "fixed_5")]
    given = build(runs, [Contrast("calibrated", "fixed_10", "session/recall_all@10")]).comparison["contrasts"]
    assert [(c["arm"], c["metric"]) for c in given] == [("calibrated", "session/recall_all@10")]
    assert build(runs, []).comparison["contrasts"] == []


def test_a_report_built_again_keeps_the_order_of_its_arms_and_so_its_comparisons(runs: Path) -> None:
    names = [*build(runs).comparison["arms"]]
    turned = names[::-1]
    assert len(names) > 1
    declared = build(runs, expected=turned).comparison
    again = build(runs).comparison
    assert [*again["arms"]] == [*declared["arms"]] != names
    assert [(c["arm"], c["comparator"]) for c in again["exploratory"]] == [
        (c["arm"], c["comparator"]) for c in declared["exploratory"]]






@pytest.mark.parametrize(("manifest", "expected"), [
    ({"source": "other"}, "different versions of memlab's source"),
    ({"pipeline": {"judge": {"is": "memlab.OfficialJudge"}}}, "an answer could address the judge \\(gap\\)."),
    ({"tokens": "the reader's tokenizer 12ab"}, "The arms count tokens differently, .*fixed_5 by words and punctuation "
                                                "marks.*gap by the reader's tokenizer 12ab")])
def test_what_does_not_compare_is_a_note(runs: Path, manifest: dict, expected: str) -> None:
    before = build(runs).comparison["notes"]
    assert "Tokens are counted by words and punctuation marks." in before
    assert not re.search(expected, " ".join(before))
    seal(next(runs.glob("gap-*")), **manifest)
    assert re.search(expected, " ".join(build(runs).comparison["notes"]))


def test_no_finished_run_is_a_clear_error_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(MemlabError, match="no finished run is here"):
        build(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_report_whole(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = build(runs).html.read_text()
    leftovers = [runs / f".{name}.0.tmp" for name in ("report.html", "report.md", "comparison.json")]
    for path in leftovers:
        path.write_text("half")
        os.utime(path, (0, 0))
    build(runs)
    assert not any(path.exists() for path in leftovers)  # of killed writers

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(MemlabError, match="report.html: cannot be written: the disk is full"):
        build(runs)
    assert (runs / "report.html").read_text() == before
    assert not list(runs.glob(".*.*.*"))



def test_the_command_builds_every_report_below_a_folder(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(runs.parents[1])]) == 0
    assert str(runs / "report.html") in capsys.readouterr().out.replace("\n", "")


def test_arms_on_other_data_settings_are_named_and_left_out(runs: Path) -> None:
    for path in runs.glob("*/manifest.json"):
        limit = 3 if path.parent.name.startswith(("gap-", "by_type-")) else None
        seal(path.parent, data={"limit": limit})
    exact = {name: next(runs.glob(f"{name}-*")).name for name in ("gap", "by_type")}
    built = build(runs, contrasts=[], expected=["by_type", "gap"], exact=exact)
    assert list(built.comparison["arms"]) == ["by_type", "gap"]
    assert built.comparison["notes"][0].startswith("Left out, since they ran with other data settings: ")
    assert "fixed_5 (60 questions)" in built.comparison["notes"][0]
    assert "Left out, since they ran" in built.html.read_text()
    assert list(build(runs).comparison["arms"]) == ["by_type", "gap"]  # as the last report


def test_a_report_built_again_has_the_runs_of_the_last_one_not_those_of_other_settings(runs: Path) -> None:
    (first,) = runs.glob("gap-*")
    other = shutil.copytree(first, runs / "gap-00ff00ff")
    seal(other, digest="00ff00ff", finished="2099-01-01T00:00:00Z")  # the newest

    def folder_of_gap(exact: dict[str, str] | None = None) -> str:
        return build(runs, [], ["gap"] if exact else [], exact=exact).comparison["arms"]["gap"]["folder"]

    assert folder_of_gap({"gap": first.name}) == first.name
    assert folder_of_gap() == first.name
    later = time.time() + 5
    os.utime(other / "manifest.json", (later, later))  # it was run again, and the report was not built
    assert folder_of_gap() == other.name
    shutil.rmtree(other)
    assert folder_of_gap() == first.name


def test_a_report_built_by_hand_is_not_taken_for_that_of_a_command(tmp_path: Path) -> None:
    one = arm(tmp_path)
    one.run(store_at(str(tmp_path / "store")))
    (comparison,) = publish([one], NoTracking(), [])
    before = comparison.read_bytes()
    build(one.arms_folder(), seed=3)
    assert not (one.arms_folder() / RECORD).exists()
    publish([one], NoTracking(), [])
    assert comparison.read_bytes() == before


def test_counts_of_what_went_wrong_and_damaged_runs_are_in_every_form(
        runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in runs.glob("*/manifest.json"):
        told = {"texts were cut": {"number": 2, "of": 1200}}
        told |= {"replies could not be read": {"number": 3, "of": 40}} if path.parent.name.startswith("gap-") else {}
        seal(path.parent, told=told)
    damaged = next(runs.glob("fixed_5-*")) / "metrics.json"
    damaged.write_text("{")
    built = build(runs, contrasts=[])
    print_report(built.view)
    for form in (" ".join(capsys.readouterr().out.split()), built.html.read_text(), built.markdown.read_text()):
        assert "2 of 1,200 texts were cut (all arms)." in form
        assert "3 of 40 replies could not be read (gap)." in form
        assert " questions alike." in form
        assert "Left out" in form
        assert f"{damaged.parent.name}/metrics.json" in form
    assert str(runs) not in built.json.read_text()


def test_answers_without_a_verdict_stand_beside_the_figures(runs: Path) -> None:
    """In the comparison, at the arm's name, and among the notes: excluded by strict, counted by the official script."""
    rows = [{"question": q, "judge": judge, "correct": correct, "score": correct, "reply": "", "fault": fault}
            for judge, none in (("strict", None), ("official", False)) for q, correct, fault in
            ((0, True, None), (1, none, "are empty"), (2, none, "were cut off at max_tokens"))]
    (folder,) = runs.glob("gap-*")
    (folder / "verdicts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    seal(folder)
    files = build(runs)
    comparison = json.loads(files.json.read_text())
    assert comparison["arms"]["gap"]["verdicts"] == {
        "strict": {"answers": 3, "without": 2, "incomplete": 0},
        "official": {"answers": 3, "without": 0, "incomplete": 2}}
    assert "verdicts" not in comparison["arms"]["fixed_5"]
    notes = " ".join(comparison["notes"])
    assert "gap, judge strict: 2 of 3 answers without a verdict, left out of the accuracy and of paired tests" in notes
    assert "gap, judge official: 1 reply is empty, 1 reply was cut off at max_tokens, and counted" in notes
    for page in (files.markdown, files.html):
        text = page.read_text()
        assert "2 of 3 answers without a verdict by strict" in text
        assert "2 of 3 verdicts from empty or cut replies of official" in text


def test_a_report_of_another_budget_stays_beside_the_new_one(runs: Path) -> None:
    for one in [*runs.glob("[!g]*-*")]:  # one arm is enough
        shutil.rmtree(one)

    def limited(tokens: int) -> None:
        for one in runs.glob("*/manifest.json"):
            seal(one.parent, pipeline={"select": {"is": "memlab.Budget", "tokens": tokens}})
        build(runs)

    limited(300)
    before = {name: (runs / name).read_bytes() for name in ("report.html", "report.md", "comparison.json")}
    limited(3000)
    assert json.loads((runs / "comparison.json").read_text())["budget"] == 3000
    kept = {path.name for path in runs.glob("*.300_tokens.*")}
    assert kept == {"report.300_tokens.html", "report.300_tokens.md", "comparison.300_tokens.json"}
    assert all((runs / name.replace(".", ".300_tokens.")).read_bytes() == text for name, text in before.items())
    build(runs)  # the same budget: nothing is kept beside it
    assert {path.name for path in runs.glob("*_tokens.*")} == kept
