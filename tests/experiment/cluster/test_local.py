"""Arms side by side on one machine: the same figures, and a failed arm stops no other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memlab.commands.status import main as status
from memlab.experiment.cluster.local import Local
from memlab.experiment.cluster.snapshot import sweeps
from memlab.experiment.harness.sweep import read
from memlab.run import main
from memlab.support.foreign import read_json
from tests.greedy import plug_in
from tests.small import arm, words

pytestmark = pytest.mark.slow


def comparison(root: Path) -> dict:
    comparison = read_json(root / "runs" / "single" / "synthetic" / "comparison.json")
    return {name: one["metrics"] for name, one in comparison["arms"].items()}


@pytest.mark.parametrize("asked", [("-m", "rank/select=fixed,gap"), ("rank/select=gap", "shards=2")])
def test_processes_give_what_one_process_gives(
        asked: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    assert main(words(tmp_path / "one", *asked[:2])) == 0
    assert main(words(tmp_path / "many", *asked, "hydra/launcher=local", "hydra.launcher.workers=2")) == 0
    assert comparison(tmp_path / "one") == comparison(tmp_path / "many")
    assert "2 processes at a time" in capsys.readouterr().out
    assert status(["--out", str(tmp_path / "many" / "runs")]) == 0
    assert "0 failed" not in (output := capsys.readouterr().out)
    assert " done; report: " in output
    assert not list((tmp_path / "many" / "runs" / "single" / "synthetic").glob("*.shards"))


def test_the_status_shows_the_last_lines_of_failed_arms_and_the_same_command_continues(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    line = words(tmp_path, "-m", "rank/select=fixed,gap", "hydra/launcher=local", "hydra.launcher.workers=2")
    folder = read(line[1:], multirun=True).arms[1].arms_folder()
    folder.parent.mkdir(parents=True)
    folder.write_text("a file where the run folders should be")
    assert main(line) == 1
    assert "2 of 2 arms failed: fixed, gap" in capsys.readouterr().out
    assert status(["--out", str(tmp_path / "runs")]) == 1
    assert "2 failed" in (output := capsys.readouterr().out)
    assert "a file is there, where a folder is needed" in output
    folder.unlink()
    assert main(line) == 0
    assert status(["--out", str(tmp_path / "runs")]) == 0


def test_a_process_that_the_system_ends_says_how_to_need_less(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    line = words(tmp_path, *plug_in(tmp_path, monkeypatch), "rank.select.k=3,9", "hydra/launcher=local")
    assert main(["-m", *line, "hydra.launcher.workers=2"]) == 1
    told = capsys.readouterr().out
    assert "k=9: signal 9; often for lack of memory: run fewer at a time (hydra.launcher.workers=1), or take" in told
    assert "1 of 2 arms failed: k=9" in told


def test_each_process_has_its_share_of_the_cores() -> None:
    assert Local(workers=3).count() == 3
    assert Local().count() == max(len(os.sched_getaffinity(0)) // 2, 1)


def test_arms_are_dealt_to_as_many_processes_as_there_are(tmp_path: Path) -> None:
    arms = [arm(tmp_path, name=str(n)) for n in range(5)]
    assert Local(workers=2).bundles(arms) == [[0, 1, 2], [3, 4]]


def test_status_knows_what_was_submitted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["--out", str(tmp_path)]) == 1
    assert "no sweep was submitted" in capsys.readouterr().err
    assert main(words(tmp_path, "rank.select.k=4")) == 0
    capsys.readouterr()
    assert status([f"out={tmp_path}/runs"]) == 0
    output = capsys.readouterr().out
    assert f"1 arm finished in {tmp_path}/runs/single/synthetic\n" in output
    assert "ran without a launcher" in output
    assert main(words(tmp_path, "-m", "rank/select=fixed,gap", "hydra/launcher=local")) == 0
    assert len(list(sweeps(tmp_path / "runs"))) == 1
    capsys.readouterr()
    assert status(["singel", "--out", str(tmp_path / "runs")]) == 1
    assert "did you mean 'single'?" in capsys.readouterr().err
