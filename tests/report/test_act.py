from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab.evaluate.compare import ArmResult, Comparison, compare
from memlab.harness.results import ArmRun
from memlab.harness.sweep import preset
from memlab.report.act import act
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
    assert lines["override"] == "rank/select=gap"
    assert lines["in Python"] == 'from memlab import preset; pipeline = preset("rank/select=gap")'
    assert shlex.split(lines["ask it"]) == ["memlab", "ask", "data=custom", "data.path='my chats, 2024'",
                                            "rank/select=gap", "Who's my manager?"]


def test_settings_of_the_experiment_are_named_where_the_arm_needs_them() -> None:
    pipeline = ("system=plain", "rank/select=budget", "rank.select.tokens=300")
    one = run("plain", "systems", ["+exp=systems", "system=plain", "rank.select.tokens=300"], *pipeline)
    lines = dict(act(of(one), [one]))
    assert shlex.split(lines["override"]) == ["system=plain", "rank/select=budget", "rank.select.tokens=300"]
    assert spec(preset(*shlex.split(lines["override"]))) == one.manifest["pipeline"]


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


@pytest.mark.parametrize("overrides", [None, [3], "x"])
def test_runs_of_python_or_of_others_give_no_words(overrides: Any) -> None:
    one = run("a", "python", [], "system=plain")
    one.manifest.update(command="", overrides=overrides)
    assert act(of(one), [one]) == []
