from __future__ import annotations

import sys
from pathlib import Path

import pytest

from memlab.__main__ import main
from memlab.experiment.config import plugins
from memlab.experiment.harness.sweep import read
from tests.data.official_records import write
from tests.experiments.encoder_training.test_friendsqa import episodes
from tests.experiments.stale.test_memorycode import DIALOGUE

COMMANDS = [file.parent.name for file in plugins.EXPERIMENTS.glob("*/__main__.py")]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_experiment_with_a_command_says_what_it_does(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["experiment", name, "--help"])
    assert ended.value.code == 0
    assert f"usage: memlab experiment {name}" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "words", "arm"), [
    ("encoder_training", ["data=friendsqa", "data.path=FOLDER", "name=mine"], "mine"),
    ("scenarios", ["data=scenarios", "name=mine"], "mine"),
    ("scenarios", ["data=scenarios", "data.examples=true", "name=mine"], "mine"),
    ("stale", ["data=memorycode", "data.path=FOLDER", "name=mine"], "mine"),
    ("adaptive_k", ["+exp=cluster_gap"], "cluster_gap"),
    ("chunking", ["write/chunk=semantic", "name=mine"], "mine"),
    ("sentence_pruning", ["+exp=sentence_pruning", "+arm/sentence_pruning=quarter"], "quarter")])
def test_the_techniques_of_an_experiment_are_planned(name: str, words: list[str], arm: str, tmp_path: Path,
                                                     capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "friendsqa_dev.json", episodes())
    write(tmp_path / "dialogue_3.json", DIALOGUE)
    words = [word.replace("FOLDER", str(tmp_path)) for word in words]
    assert main(["run", f"plugins=[{name}]", *words, "search/dense=none", f"out={tmp_path}", "plan=true"]) == 0
    assert f" {arm} " in capsys.readouterr().out


def test_a_choice_of_an_experiment_names_its_plug_in(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "data=scenarios"]) == 2
    assert "there is no 'scenarios' here; a plug-in has it: add plugins=[scenarios]" in capsys.readouterr().out
    assert main(["experiment", "scenario", "runs"]) == 2
    assert "there is no 'scenario'; did you mean 'scenarios'?" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["experiment", "scenarios", "runs"], ["run", "plugins=[scenarios]"]])
def test_an_installed_package_says_that_it_has_no_experiments(
        words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    read([])
    monkeypatch.setattr(plugins, "EXPERIMENTS", tmp_path / "experiments")
    monkeypatch.setattr("sys.path", [place for place in sys.path if "experiments" not in place])
    monkeypatch.delitem(sys.modules, "scenarios", raising=False)
    assert main(words) == 2
    assert "".join(capsys.readouterr()).count(plugins.NO_CHECKOUT) == 1
