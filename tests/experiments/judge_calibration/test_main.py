"""Calibration of judges whose faults are known: sensitivity, specificity, kappa and the leniency curve."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from judge_calibration.__main__ import as_tables, calibrate, judge_answers, main, sample
from judge_calibration.synthetic_answers import WRONG, make_answers

from memlab.stages.judge.cases import cases
from memlab.stages.judge.llm import LlmJudge
from memlab.stages.judge.rules import Contains
from memlab.store import Store
from tests.commands.test_judge import data, words  # noqa: F401 - a fixture
from tests.experiments.judge_calibration.test_synthetic_answers import ROWS
from tests.models.chatserver import serving
from tests.stages.judge.script import put
from tests.stages.judge.worlds import says, world

pytestmark = pytest.mark.nightly


@pytest.fixture(autouse=True)
def script(memlab_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(memlab_home, monkeypatch)


def test_a_judge_that_says_yes_to_all_is_flagged(tmp_path: Path) -> None:
    tables, made = world(ROWS), make_answers(world(ROWS))
    said = judge_answers(LlmJudge(chat=says("yes")), tables, made, Store(tmp_path))["longmemeval_style"]
    found = calibrate(made, said)
    assert (found["sensitivity"]["value"], found["specificity"]["value"]) == (1.0, 0.0)
    assert found["kappa"]["value"] == 0.0
    assert [step["kind"] for step in found["leniency"]] == list(WRONG)
    assert {step["value"] for step in found["leniency"]} == {1.0, None}
    assert found["flagged"]


def test_a_judge_that_knows_is_perfect_and_silence_is_counted(tmp_path: Path) -> None:
    tables, made = world(ROWS), make_answers(world(ROWS))
    perfect = calibrate(made, [f.right for f in made.answers])
    assert perfect["kappa"]["value"] == perfect["specificity"]["value"] == perfect["sensitivity"]["value"] == 1.0
    assert not perfect["flagged"]
    silent = calibrate(made, [None] * len(made.answers))
    assert silent["unreadable"] == silent["items"] == len(made.answers)
    assert silent["specificity"]["value"] is None
    assert silent["flagged"]
    strict = LlmJudge(chat=says("Hm"), name="strict", style="strict")
    mumbles = judge_answers(strict, tables, made, Store(tmp_path))["strict"]
    assert mumbles == [None] * len(made.answers)


def test_every_synthetic_answer_is_put_to_its_own_question(tmp_path: Path) -> None:
    tables, made = world(ROWS), make_answers(world(ROWS))
    for case, answer in zip(cases(as_tables(tables, made.answers)), made.answers, strict=True):
        assert (case.text, case.gold, case.category, case.abstain) == ROWS[answer.question][:4]
        assert case.response == answer.text
    lenient = calibrate(made, judge_answers(Contains(), tables, made, Store(tmp_path))["contains"])
    assert lenient["specificity"]["value"] == 1.0
    assert lenient["kinds"]["reordered"]["value"] == 0.0


def test_a_sample_keeps_whole_questions() -> None:
    made = make_answers(world(ROWS))
    some = sample(made, 3, seed=4)
    questions = {f.question for f in some.answers}
    assert len(questions) == 3
    assert some.answers == [f for f in made.answers if f.question in questions]
    assert sample(made, None) is made


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "c.json"
    words = ["--data", "synthetic", "--judge", "contains", "--limit", "20", "--out", str(out), "--store",
             str(tmp_path / "store")]
    assert main(words) == 0
    assert "specificity" in capsys.readouterr().out
    figures = json.loads(out.read_text())["judges"]["contains"]
    assert figures["specificity"]["value"] == 1.0
    assert not figures["flagged"]
    assert main([*words[:-2], "--judge", "conains"]) == 1
    assert "did you mean 'contains'" in capsys.readouterr().err


def test_the_calibration_of_the_script_names_what_it_counts(data: Path,  # noqa: F811
                                                            capsys: pytest.CaptureFixture[str]) -> None:
    out = data.parent / "calibration.json"
    with serving(rule=lambda _: "") as server:
        assert main([*words(data), "--chat.model=tiny", f"--chat.url={server.url}", "--out", str(out)]) == 0
    figures = json.loads(out.read_text())["judges"]["official"]
    assert figures["told"] == {"judge official: replies are empty": figures["items"]}
    assert f"judge official: replies are empty: {figures['items']}" in capsys.readouterr().out


def test_a_damaged_file_is_never_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "calibration.json"
    path.write_text('{"judges": 3}')
    assert main(["--judge", "f1", "--data", "synthetic", "--limit", "1", "--out", str(path)]) == 1
    assert "calibration.json" in capsys.readouterr().err
    assert path.read_text() == '{"judges": 3}'
