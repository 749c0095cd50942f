from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from memlab import ask
from memlab.config.overrides import parse
from memlab.evaluate.compare import ArmResult, Comparison, compare
from memlab.harness.arm import Arm
from memlab.harness.results import ArmRun
from memlab.harness.sweep import preset, read
from memlab.report.act import act
from memlab.runtime.shell import setting
from memlab.stage import spec

QUESTIONS = pl.DataFrame({"question": [0, 1], "corpus": [0, 0], "group": [0, 1], "text": ["Who's my manager?", "a=b"],
                          "category": [None, None], "label_error": [None, None], "scored": [True, True],
                          "selected/turn/recall_all": [1.0, 0.0], "context/tokens": [9.0, 9.0]},
                         schema_overrides={"label_error": pl.String, "category": pl.String})


def run(name: str, experiment: str, overrides: list[str], *words: str) -> ArmRun:
    manifest: dict[str, Any] = {"experiment": experiment, "overrides": overrides, "oracle": False, "tainted": False,
                                "command": shlex.join(["memlab", "run", *overrides]),
                                "pipeline": spec(preset(*words))}
    made = ArmRun(name, "0", Path("nowhere"), manifest, {})
    made.__dict__["questions"] = QUESTIONS
    return made


def of(*arms: ArmRun, **more: Any) -> Comparison:
    comparison = compare("e", "d", {one.name: ArmResult(QUESTIONS) for one in arms}, [])
    return {**comparison, **more}  # type: ignore[typeddict-item]


def test_a_verdict_gives_the_override_the_python_and_the_ask_line_quoted_for_both_shells() -> None:
    given = ["+exp=adaptive_k", "data=custom", "data.path='my chats, 2024'", "out=there", "rank/select=gap"]
    lines = dict(act(of(one := run("gap", "adaptive_k", given, "rank/select=gap")), [one]))
    assert lines["settings for memlab run"] == "rank/select=gap"
    assert lines["in Python"] == 'from memlab import preset; pipeline = preset("rank/select=gap")'
    assert shlex.split(lines["ask it"]) == ["memlab", "ask", "data=custom", 'data.path="my chats, 2024"',
                                            "rank/select=gap", "Who's my manager?"]


def test_settings_of_the_experiment_are_named_where_the_arm_needs_them() -> None:
    pipeline = ("system=plain", "rank/select=budget", "rank.select.tokens=300", "rank.select.twin=false")
    one = run("plain", "systems", ["+exp=systems", "system=plain", "rank.select.tokens=300"], *pipeline)
    lines = dict(act(of(one), [one]))
    assert shlex.split(lines["settings for memlab run"]) == [
        "system=plain", "rank/select=budget", "rank.select.tokens=300", "rank.select.twin=false"]
    assert spec(preset(*shlex.split(lines["settings for memlab run"]))) == one.manifest["pipeline"]


def winner_of(*words: str, multirun: bool = False, name: str | None = None) -> tuple[Arm, ArmRun]:
    """The arm of this name that a command line makes, and its run as a report reads it."""
    arms = read(words, multirun).arms
    arm = next(one for one in arms if name in (None, one.name))
    manifest: dict[str, Any] = {"experiment": arm.experiment, "overrides": list(arm.overrides), "oracle": False,
                                "tainted": False, "command": arm.command, "pipeline": spec(arm.pipeline)}
    made = ArmRun(arm.name, "0", Path("nowhere"), manifest, {})
    made.__dict__["questions"] = QUESTIONS
    return arm, made


def configuration(arm: Arm) -> dict[str, Any]:
    """The recorded configuration of an arm's pipeline, without what says how arms are run, compared and judged."""
    held = yaml.safe_load(arm.config)
    return {key: value for key, value in held.items() if key not in ("data", "track", "contrasts", "name", "system")}


@pytest.mark.slow
@pytest.mark.parametrize(("words", "multirun", "name"), [
    (["+exp=adaptive_k"], False, "marginal"),
    (["+exp=adaptive_k", "system=best", "seed=3"], False, "budget"),
    (["+exp=systems"], False, "best"),
    (["+exp=systems", "rank.select.tokens=130", "data.lives=2"], False, "gimli_corrected"),
    (["system=best", "rank.select.k=5"], False, None),
    (["rank/select=gap,fixed_5", "search/lexical=none"], True, "gap"),
    (["rank.select.k=5,10", "system=plain"], True, "k=5"),
])
def test_the_words_compose_the_configuration_of_the_winner(words: list[str], multirun: bool, name: str | None) -> None:
    arm, made = winner_of(*words, multirun=multirun, name=name)
    lines = dict(act(of(made), [made]))
    (again,) = read(shlex.split(lines["settings for memlab run"])).arms
    assert configuration(again) == configuration(arm)
    assert spec(_run_python(lines["in Python"])) == spec(arm.pipeline)


def _run_python(line: str) -> Any:
    """The pipeline that a printed line of Python makes."""
    names: dict[str, Any] = {}
    exec(line, names)
    return names["pipeline"]


@pytest.mark.slow
def test_the_words_of_data_with_blanks_in_their_path_ask_that_data(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "my chats, 2024"
    folder.mkdir()
    turns = [{"role": "user", "text": "Dana is my manager now."}, {"role": "user", "text": "The tent is green."}]
    (folder / "sessions.jsonl").write_text(json.dumps({"corpus": "me", "session": "s", "said_on": "2024-03-01",
                                                       "turns": turns}) + "\n", encoding="utf-8")
    question = {"question": "q", "corpus": "me", "text": "Who's my manager?", "evidence": [{"session": "s", "turn": 0}]}
    (folder / "questions.jsonl").write_text(json.dumps(question) + "\n", encoding="utf-8")
    arm, made = winner_of("search/dense=none", "rank.select.k=1", "data=custom", f"data.path='{folder}'")
    lines = dict(act(of(made), [made]))
    (again,) = read([*shlex.split(lines["settings for memlab run"]), "data=custom", f"data.path='{folder}'"]).arms
    assert configuration(again) == configuration(arm)
    command, verb, *asked = shlex.split(lines["ask it"])
    assert (command, verb) == ("memlab", "ask")
    assert ask.main(asked) == 0
    assert "Dana is my manager now." in capsys.readouterr().out


def test_the_words_of_a_plug_in_name_the_plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lab_of_words.py").write_text(
        "from memlab.rank.select import Fixed\n\n\nclass Mine(Fixed):\n    pass\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    arm, made = winner_of("plugins=[lab_of_words]", "++rank.select={_target_: lab_of_words.Mine, k: 3}")
    lines = dict(act(of(made), [made]))
    (again,) = read(shlex.split(lines["settings for memlab run"])).arms
    assert configuration(again) == configuration(arm)
    assert spec(_run_python(lines["in Python"])) == spec(arm.pipeline)


def test_no_words_are_offered_that_would_make_another_pipeline() -> None:
    one = run("gap", "adaptive_k", ["+exp=adaptive_k"], "rank/select=gap")  # a record without the swept value
    assert act(of(one), [one]) == []


def test_of_level_arms_the_default_system_is_offered() -> None:
    arms = [run(name, "single", [f"system={name}"], f"system={name}") for name in ("plain", "best")]
    assert dict(act(of(*arms), arms))["settings for memlab run"] == "system=best"


@pytest.mark.parametrize("folder", ["it's", 'say "hi"', "a, b=${x}", "C:\\\\new", "naïve [1]", "$HOME `x`",
                                    "two  blanks", "plain-name"])
def test_any_folder_comes_back_from_the_words_of_a_tie(folder: str) -> None:
    given = ["data=custom", shlex.split(setting("data.path", folder))[0]]
    arms = [run(name, "single", [*given, f"rank/select={name}"], f"rank/select={name}") for name in ("gap", "fixed_3")]
    lines = dict(act(of(*arms), arms))
    assert parse(shlex.split(lines["ask it"])[3]).value() == parse(given[1]).value()
    if "${" not in folder:
        assert shlex.split(lines["more questions"]) == ["memlab", "questions", folder]


def test_one_arm_is_compared_with_the_plain_system() -> None:
    one = run("best", "single", ["system=best"], "system=best")
    assert dict(act(of(one), [one]))["compare it"] == "memlab run -m system=plain,best"


def test_where_everything_fits_the_same_command_is_given_with_the_budget_to_try() -> None:
    fits = {"size": 536., "unit": "tokens", "limit": 1000, "setting": "rank.select.tokens", "advised": 130}
    given = ["+exp=systems", "rank.select.tokens=1000"]
    arms = [run(name, "systems", given, "system=plain") for name in ("a", "b")]
    assert act(of(*arms, whole=fits), arms) == [("compare again", "memlab run +exp=systems rank.select.tokens=130")]
    swept = [run(name, "systems", [f"rank/select={name}"], "system=plain") for name in ("fixed", "gap")]
    assert act(of(*swept, whole=fits), swept) == []


def test_where_the_best_has_everything_the_same_command_is_given_with_a_smaller_budget() -> None:
    less = {"limit": 1000, "unit": "tokens", "setting": "rank.select.tokens", "advised": 250}
    arms = [run(name, "systems", ["+exp=systems"], "system=plain") for name in ("a", "b")]
    full = ArmResult(QUESTIONS.with_columns(pl.lit(1.0).alias("selected/turn/recall_all")))
    comparison: Any = {**compare("e", "d", {"a": full, "b": full}, []), "smaller": less}
    assert dict(act(comparison, arms))["compare again"] == "memlab run +exp=systems rank.select.tokens=250"
    half: Any = {**of(*arms), "smaller": less}
    assert "compare again" not in dict(act(half, arms))


@pytest.mark.parametrize("overrides", [None, [3], "x"])
def test_runs_of_python_or_of_others_give_no_words(overrides: Any) -> None:
    one = run("a", "python", [], "system=plain")
    one.manifest.update(command="", overrides=overrides)
    assert act(of(one), [one]) == []
