from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab.__main__ import main
from memlab.commands.ask import AskCommand
from memlab.evaluate.compare import ArmResult, compare
from memlab.experiment.config.choices import own_choices
from memlab.experiment.config.instantiate import CONF
from memlab.experiment.harness.arm import Arm
from memlab.experiment.harness.manifest import ways_to_ask
from memlab.experiment.harness.results import ArmRun
from memlab.experiment.harness.sweep import OF_RUNS, preset, read
from memlab.learn.command import read_arm, split
from memlab.memory.default import with_system
from memlab.pipeline.stage import spec
from memlab.report.act import commands_to_offer
from memlab.report.opening import recommended_arm
from memlab.support.errors import Faults, MemlabError
from tests.examples import rest_at_night

QUESTIONS = pl.DataFrame({"question": [0, 1], "corpus": [0, 0], "group": [0, 1], "text": ["Who's my manager?", "a=b"],
                          "category": [None, None], "label_error": [None, None], "scored": [True, True],
                          "selected/turn/recall_all": [1.0, 0.0], "context/tokens": [9.0, 9.0]},
                         schema_overrides={"label_error": pl.String, "category": pl.String})
EXPERIMENTS = sorted(choice.removeprefix("exp/") for choice in own_choices(CONF) if choice.startswith("exp/"))
READY: dict[str, Any] = {"ready": True, "training": []}


def run(name: str, *overrides: str, how: dict[str, Any] = READY, oracle: bool = False) -> ArmRun:
    """The run of an arm with these overrides as a report reads it."""
    manifest = {"experiment": "single", "overrides": list(overrides), "oracle": oracle, "tainted": False,
                "command": shlex.join(["memlab", "run", *overrides]), "asking": how}
    made = ArmRun(name, "0", Path("nowhere"), manifest, {})
    made.__dict__["questions"] = QUESTIONS
    return made


def recorded(arm: Arm) -> ArmRun:
    return run(arm.name, *arm.overrides, how=ways_to_ask(arm.pipeline, ()), oracle=arm.pipeline.uses_oracle())


def offered(*arms: ArmRun, **more: Any) -> dict[str, str]:
    comparison: Any = {**compare("e", "d", {one.name: ArmResult(QUESTIONS) for one in arms}, []), **more}
    return dict(commands_to_offer(comparison, arms, recommended_arm(comparison)))


def words_of(line: str, verb: str) -> list[str]:
    command, found, *words = shlex.split(line)
    assert (command, found) == ("memlab", verb)
    return words


def check_training(lines: dict[str, str]) -> None:
    """Compose what ``memlab train`` is to be fitted on, if that is offered."""
    if line := lines.get("fit it on these labels"):
        for part in split([word for word in words_of(line, "train")[1:] if not word.startswith(("file=", "out="))]):
            read_arm(part)


def test_a_verdict_gives_the_command_the_python_and_the_question_quoted_for_both_shells() -> None:
    given = ["rank/select=gap", "+exp=adaptive_k", "data=custom", "data.path='my chats, 2024'", "out=there", "plan=on"]
    lines = offered(run("gap", *given))
    data, words = ["data=custom", 'data.path="my chats, 2024"'], ["+exp=adaptive_k", "rank/select=gap"]
    assert words_of(lines["run it"], "run") == [*data, *words]
    assert lines["in Python"] == 'from memlab import preset; pipeline = preset("+exp=adaptive_k", "rank/select=gap")'
    assert words_of(lines["ask it"], "ask") == [*data, *words, "Who's my manager?"]


def test_an_oracle_offers_nothing_and_how_arms_are_run_is_left_out() -> None:
    (oracle,) = read(["+exp=adaptive_k", "rank/select=oracle"]).arms
    assert offered(recorded(oracle)) == {}
    (arm,) = read(words := ["system=best", "rank.select.k=5", "seed=3", "plan=true", "out=there"]).arms
    assert {*words_of(offered(recorded(arm))["run it"], "run")} == {*words[:3]}


@pytest.mark.slow
@pytest.mark.parametrize("name", rest_at_night(EXPERIMENTS, ["ablation", "adaptive_k", "demo", "learned", "marginal"]))
def test_every_line_that_an_experiment_offers_can_be_typed(name: str) -> None:
    words = [f"+exp={name}", "plan=true", *(["system=oltramem"] if name == "ablation" else [])]
    try:
        sweep = read(words)
    except Faults:  # it asks a chat model
        sweep = read([*words, "chat=embedded", "chat.url=http://127.0.0.1:1/v1"])
    ready = [one for one in sweep.arms if not one.pipeline.uses_oracle() and one.name not in sweep.unready]
    if not ready:  # its models are not here
        return
    lines = offered(recorded(arm := ready[-1]))
    assert [one.digest() for one in read(words_of(lines["run it"], "run")).arms] == [arm.digest()]
    names: dict[str, Any] = {}
    exec(lines["in Python"], names)
    assert spec(names["pipeline"]) == spec(arm.pipeline)
    for label in ("ask it", "ask with that fit"):
        if label in lines and "FIT.json" not in lines[label] and "RANKER.json" not in lines[label]:
            assert read(AskCommand.of(words_of(lines[label], "ask")).arguments, without=OF_RUNS).arms
    check_training(lines)


@pytest.mark.parametrize(("words", "asked"), [
    (["rank/select=marginal"], "shipped"), (["rank/select=top_p_calibrated"], "shipped"),
    (["rank/select=calibrated"], "fitted"), (["system=best_learned"], "shipped"), (["system=opsem"], "")])
def test_what_is_fitted_on_labels_is_asked_as_shipped_or_after_the_training_line(
        words: list[str], asked: str, tmp_path: Path) -> None:
    (tmp_path / "my chats").mkdir()
    (tmp_path / "my chats" / "sessions.jsonl").write_text(json.dumps(
        {"corpus": "me", "session": "s", "said_on": "2024-03-01", "turns": [{"role": "user", "text": "Hi"}]}) + "\n")
    folder = str(tmp_path / "my chats")
    lines = offered(recorded(made := read([*words, "data=custom", f"data.path='{folder}'"]).arms[0]))
    assert ("ask it" in lines) == (asked == "shipped")
    assert ("ask with that fit" in lines) == ("fit it on these labels" in lines) == bool(asked)
    for label, line in lines.items():
        if label != "in Python":
            assert {"data=custom", f'data.path="{folder}"'} <= {*shlex.split(line)}
    if asked == "shipped":
        given = AskCommand.of(words_of(lines["ask it"], "ask")).arguments
        assert spec(read(with_system(given), without=OF_RUNS).arms[0].pipeline) == spec(made.pipeline)
    check_training(lines)
    if asked == "fitted":
        with pytest.raises(MemlabError, match=r"a question of your own has not. Fix: fit it once .* \(memlab train "):
            preset(*words).without_judges()


@pytest.mark.slow
def test_the_lines_of_a_real_report_run_as_printed(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    small = ["data.lives=4", "data.questions=6", "data.sessions=8", "search/dense=none"]
    assert main(["run", *small, "rank/select=marginal", "track=none", "out=runs"]) == 0
    (file,) = Path("runs").glob("*/*/comparison.json")
    lines = json.loads(file.read_text())["act"]
    assert [label for label, _ in lines] == ["run it", "in Python", "ask it", "fit it on these labels",
                                             "ask with that fit"]
    printed = capsys.readouterr().out
    for label, text in lines:
        assert f"{label}: {text}\n" in printed  # unbroken
        if label == "in Python":
            names: dict[str, Any] = {}
            exec(text, names)
            assert spec(names["pipeline"]) == spec(preset(*small[3:], "rank/select=marginal"))
        elif label != "run it":
            assert main(shlex.split(text)[1:]) == 0, label


def test_no_line_asks_with_the_shipped_fit_where_that_is_of_other_rankings() -> None:
    pipeline = preset("rank/select=marginal")
    other = ways_to_ask(pipeline, ["dense:turn", "walks", "units of level turn"])
    assert (ways_to_ask(pipeline, ())["ready"], other["ready"], len(other["training"])) == (True, False, 1)
    assert [*offered(run("marginal", how=other))][2:] == ["fit it on these labels", "ask with that fit"]


def test_of_level_arms_the_default_system_is_offered() -> None:
    lines = offered(*(run(name, f"system={name}") for name in ("plain", "best")))
    assert lines["run it"] == "memlab run system=best"


def test_one_system_is_compared_with_the_plain_one() -> None:
    assert offered(run("best", "system=best", "data.lives=2"))["compare it"] == (
        "memlab run -m system=plain,best data.lives=2")
    for words in (["system=plain"], ["system=best", "rank.select.k=5"], ["rank/select=gap"]):
        assert "compare it" not in offered(run("one", *words))


def test_where_everything_fits_the_same_command_is_given_with_the_budget_to_try() -> None:
    fits = {"size": 536., "unit": "tokens", "limit": 1000, "setting": "rank.select.tokens", "advised": 130}
    arms = [run(name, "+exp=systems", "rank.select.tokens=1000") for name in ("a", "b")]
    assert offered(*arms, whole=fits) == {"compare again": "memlab run +exp=systems rank.select.tokens=130"}
    assert offered(*(run(name, f"rank/select={name}") for name in ("fixed", "gap")), whole=fits) == {}


@pytest.mark.parametrize("overrides", [None, [3], "x"])
def test_runs_of_python_or_of_others_give_no_words(overrides: Any) -> None:
    one = run("a")
    one.manifest.update(command="", overrides=overrides)
    assert offered(one) == {}
    ranked_elsewhere = run("b", "rank/select=gap")
    ranked_elsewhere.__dict__["settings"] = {"foreign_run": "12ab"}
    assert offered(ranked_elsewhere) == {}
