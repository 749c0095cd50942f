from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from memlab import ask
from memlab.__main__ import main
from memlab.config.instantiate import CONF
from memlab.config.overrides import parse
from memlab.errors import Faults, MemlabError
from memlab.evaluate.compare import ArmResult, Comparison, compare
from memlab.harness.arm import Arm
from memlab.harness.results import ArmRun
from memlab.harness.sweep import OF_RUNS, preset, read
from memlab.learn.__main__ import MODELS
from memlab.learn.command import read_arm, split
from memlab.learn.fits import save
from memlab.learn.probability import fit_tables
from memlab.live.results import without_judges
from memlab.report.act import Act, act
from memlab.runtime.shell import setting
from memlab.stage import spec
from tests.learn.worlds import world

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


def run_words(lines: dict[str, str]) -> list[str]:
    """The words of the command line that runs an arm."""
    command, verb, *words = shlex.split(lines["run it"])
    assert (command, verb) == ("memlab", "run")
    return words


def test_a_verdict_gives_the_override_the_python_and_the_ask_line_quoted_for_both_shells() -> None:
    given = ["+exp=adaptive_k", "data=custom", "data.path='my chats, 2024'", "out=there", "rank/select=gap"]
    lines = dict(act(of(one := run("gap", "adaptive_k", given, "rank/select=gap")), [one]))
    assert run_words(lines) == ["data=custom", 'data.path="my chats, 2024"', "rank/select=gap"]
    assert lines["in Python"] == 'from memlab import preset; pipeline = preset("rank/select=gap")'
    assert shlex.split(lines["ask it"]) == ["memlab", "ask", "data=custom", 'data.path="my chats, 2024"',
                                            "rank/select=gap", "Who's my manager?"]


def test_settings_of_the_experiment_are_named_where_the_arm_needs_them() -> None:
    pipeline = ("system=plain", "rank/select=budget", "rank.select.tokens=300", "rank.select.twin=false")
    one = run("plain", "systems", ["+exp=systems", "system=plain", "rank.select.tokens=300"], *pipeline)
    lines = dict(act(of(one), [one]))
    assert run_words(lines) == [
        "system=plain", "rank/select=budget", "rank.select.tokens=300", "rank.select.twin=false"]
    assert spec(preset(*run_words(lines))) == one.manifest["pipeline"]


def winner_of(*words: str, multirun: bool = False, name: str | None = None) -> tuple[Arm, ArmRun]:
    """The arm of this name that a command line makes, and its run as a report reads it."""
    arms = read(words, multirun).arms
    arm = next(one for one in arms if name in (None, one.name))
    return arm, recorded(arm)


def recorded(arm: Arm) -> ArmRun:
    """The run of an arm as a report reads it."""
    manifest: dict[str, Any] = {"experiment": arm.experiment, "overrides": list(arm.overrides), "tainted": False,
                                "oracle": arm.pipeline.uses_oracle(), "command": arm.command,
                                "pipeline": spec(arm.pipeline)}
    made = ArmRun(arm.name, "0", Path("nowhere"), manifest, {})
    made.__dict__["questions"] = QUESTIONS
    return made


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
    (again,) = read(run_words(lines)).arms
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
    (again,) = read(run_words(lines)).arms
    assert configuration(again) == configuration(arm)
    command, verb, *asked = shlex.split(lines["ask it"])
    assert (command, verb) == ("memlab", "ask")
    assert ask.main(asked) == 0
    assert "Dana is my manager now." in capsys.readouterr().out


NEEDED_BY = {"ablation": ["system=oltramem"]}
"""Experiment -> words that its page adds; those whose arms ask a chat model are given one."""


def likely_winner(name: str) -> list[str]:
    """The words of one arm of an experiment: the arm of its first contrast, else the first that is swept."""
    content = yaml.safe_load((CONF / "exp" / f"{name}.yaml").read_text())
    wanted = {part for contrast in content.get("contrasts", [])[:1] for part in contrast["arm"].split("+")}
    words = [f"+exp={name}", *NEEDED_BY.get(name, [])]
    swept = content.get("hydra", {}).get("sweeper", {}).get("params", {})
    if "+arm" in swept:
        pytest.skip("its arms cannot be named one by one")
    for place, values in swept.items():
        listed = str(values).replace("\n", "").split(",")
        meant = [one.strip() for one in listed if one.strip().rpartition("/")[2] in wanted]
        words.append(f"{place}={(meant or [listed[0].strip()])[0]}")
    return words


def compose_line(label: str, text: str) -> None:
    """Compose what a printed line configures, up to the point where its models load; raise for what cannot run."""
    words = shlex.split(text)
    if label == "in Python":
        return  # ``act`` has composed it, and found the arm's pipeline
    if words[1] == "ask":
        asked = ask.AskCommand.of(words[2:])
        (arm,) = read(asked.arguments, without=OF_RUNS).arms
        without_judges(arm.pipeline)
    elif words[1] == "train":
        assert words[2] in MODELS
        for part in split([word for word in words[3:] if not word.startswith(("file=", "out="))]):
            read_arm(part)
    elif words[1] == "run":
        read([word for word in words[2:] if word != "-m"], "-m" in words)
    else:
        assert words[1] == "questions"


def compose_all(lines: Act) -> dict[str, str]:
    """Compose each line once; return label -> line. The file of a fit that an earlier line writes is there."""
    fit = fit_tables(world(questions=20), depth=12)
    for label, text in lines:
        if "learn.probability.path=FIT.json" in text:
            save(fit, Path("FIT.json"))
        if "rank.score.model=RANKER.json" not in text and "learn.coverage.path=FIT.json" not in text:
            compose_line(label, text)
    return dict(lines)


@pytest.mark.parametrize("name", sorted(path.stem for path in (CONF / "exp").glob("*.yaml")))
def test_every_line_that_an_experiment_offers_can_be_typed(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = [*likely_winner(name), "plan=true"]
    chat = ["chat=embedded", "chat.url=http://127.0.0.1:1/v1"]
    try:
        sweep = read(words)
    except Faults:  # it asks a chat model
        sweep = read([*words, *chat])
    if sweep.unready:  # its models are not here, nor those of its lines
        return
    made = recorded(sweep.arms[0])
    assert {"run it", "in Python"} <= {*compose_all(act(of(made), [made]))} or made.oracle


@pytest.mark.parametrize(("words", "asked"), [
    (["rank/select=marginal"], "shipped"), (["rank/select=marginal", "learn.folds=10"], "shipped"),
    (["rank/select=budget_by_value", "rank.select.value=token"], "shipped"),
    (["rank/select=top_p_calibrated"], "shipped"),
    (["rank/select=calibrated"], "fitted"), (["system=best_learned"], "fitted"),
    (["system=best_learned", "rank/select=marginal", "learn/probability=nested"], "fitted"),
    (["system=opsem"], "")])
def test_what_is_fitted_on_labels_is_asked_as_shipped_or_after_the_training_line(
        words: list[str], asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my chats").mkdir()
    (tmp_path / "my chats" / "sessions.jsonl").write_text(json.dumps(
        {"corpus": "me", "session": "s", "said_on": "2024-03-01", "turns": [{"role": "user", "text": "Hi"}]}) + "\n")
    made = recorded(read([*words, "data=custom", "data.path='my chats'"]).arms[0])
    lines = compose_all(act(of(made), [made]))
    assert ("ask it" in lines) == (asked == "shipped")
    if asked == "fitted":
        with pytest.raises(MemlabError, match=r"a question of your own has not. Fix: fit it once .* \(memlab train "):
            without_judges(preset(*words))
    assert ("ask with that fit" in lines) == bool(asked)
    assert ("fit it on these labels" in lines) == bool(asked)
    for label in {"ask it", "ask with that fit", "fit it on these labels"} & set(lines):
        assert {"data=custom", 'data.path="my chats"'} <= {*shlex.split(lines[label])}


@pytest.mark.slow
def test_the_lines_of_a_real_report_run_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small = ["data.lives=4", "data.questions=6", "data.sessions=8", "search/dense=none"]
    assert main(["run", *small, "rank/select=marginal", "track=none", "out=runs"]) == 0
    (file,) = Path("runs").glob("*/*/comparison.json")
    lines = json.loads(file.read_text())["act"]
    assert [label for label, _ in lines] == ["run it", "in Python", "ask it", "fit it on these labels",
                                             "ask with that fit"]
    for label, text in lines[2:]:
        assert main(shlex.split(text)[1:]) == 0, label


def test_no_line_asks_with_the_shipped_fit_where_that_is_of_other_rankings() -> None:
    made = recorded(read(["rank/select=marginal"]).arms[0])
    made.manifest["ranked_by"] = ["dense:turn", "walks", "units of level turn"]
    assert [label for label, _ in act(of(made), [made])][2:] == ["fit it on these labels", "ask with that fit"]


def test_the_words_of_a_plug_in_name_the_plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lab_of_words.py").write_text(
        "from memlab.rank.select import Fixed\n\n\nclass Mine(Fixed):\n    pass\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    arm, made = winner_of("plugins=[lab_of_words]", "++rank.select={_target_: lab_of_words.Mine, k: 3}")
    lines = dict(act(of(made), [made]))
    (again,) = read(run_words(lines)).arms
    assert configuration(again) == configuration(arm)
    assert spec(_run_python(lines["in Python"])) == spec(arm.pipeline)


def test_no_words_are_offered_that_would_make_another_pipeline() -> None:
    one = run("gap", "adaptive_k", ["+exp=adaptive_k"], "rank/select=gap")  # a record without the swept value
    assert act(of(one), [one]) == []


def test_of_level_arms_the_default_system_is_offered() -> None:
    arms = [run(name, "single", [f"system={name}"], f"system={name}") for name in ("plain", "best")]
    assert dict(act(of(*arms), arms))["run it"] == "memlab run system=best"


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
