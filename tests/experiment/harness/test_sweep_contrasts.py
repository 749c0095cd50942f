"""Contrasts of arms that a line does not run: left out where the experiment has such an arm, else a fault."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from memlab.experiment.harness.sweep import read
from memlab.run import main
from memlab.support.errors import Faults
from tests.experiment.config.files import faults_of, put
from tests.small import words

pytestmark = pytest.mark.slow

OMITTED = "contrasts of arms that these arguments leave out"
MINE = """# @package _global_
hydra: {mode: MULTIRUN, sweeper: {params: {SLOT: "two,three"}}}
arms:
  two: {rank: {select: {k: 2}}}
  three: {rank: {select: {k: 3}}}
  four: {rank: {select: {k: 4}}}
"""


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The argument that names a folder with two experiments; each names its arms in its own way."""
    other = MINE.replace('SLOT: "two,three"', '+arm: "other/two,other/three"')
    folder = put(tmp_path_factory.mktemp("conf"), exp__mine=MINE.replace("SLOT", "+arm/mine"), exp__other=other)
    return f"conf_dir={folder}"


def contrasts(*pairs: str, metric: str = "session/mrr") -> str:
    """The argument that declares contrasts, each written ``three>two``."""
    listed = (f"{{arm: '{arm}', comparator: '{comparator}', metric: {metric}}}"
              for arm, comparator in (pair.split(">") for pair in pairs))
    return f"contrasts=[{','.join(listed)}]"


@pytest.mark.parametrize(("more", "kept", "omitted"), [
    (["+exp=mine"], ["three > two"], ["four > two"]),
    (["+exp=other"], ["three > two"], ["four > two"]),
    (["+exp=mine", "+arm/mine=two,four"], ["four > two"], ["three > two"]),
    (["+exp=mine", "+arm/mine=three"], [], ["three > two", "four > two"]),
    (["+exp=mine", "+arm/mine=two", "name=x"], [], ["three > two", "four > two"]),
    (["+exp=mine", "+arm/mine=two,three,four"], ["three > two", "four > two"], [])])
def test_a_contrast_of_an_arm_that_the_line_leaves_out_is_named_and_dropped(
        conf: str, tmp_path: Path, more: Sequence[str], kept: Sequence[str], omitted: Sequence[str]) -> None:
    sweep = read(words(tmp_path, conf, *more, contrasts("three>two", "four>two")))
    assert [one.claim for one in sweep.contrasts] == kept
    assert sweep.left_out == dict.fromkeys(omitted, OMITTED)
    recorded = [[f"{one['arm']} > {one['comparator']}" for one in arm.settings["contrasts"]] for arm in sweep.arms]
    assert recorded == [kept] * len(sweep.arms)  # a job and a later report declare the same


@pytest.mark.parametrize(("pair", "fault"), [
    ("thre>two", "there is no arm 'thre' here; did you mean 'three'?"),
    ("three>twin", "there is no arm 'three.twin' here"),  # K is the same for all questions
    ("three>constant", "there is no arm 'constant' here"),  # of no curve
    ("two>arm=other/two", "there is no arm 'arm=other/two'")])
def test_a_contrast_of_an_arm_that_the_experiment_lacks_is_a_fault(
        conf: str, tmp_path: Path, pair: str, fault: str) -> None:
    (answer,) = faults_of(*words(tmp_path, conf, "+exp=mine", contrasts("three>two", pair)))
    assert answer.startswith(f"contrasts[1]: {fault}")


def test_a_line_without_an_experiment_has_the_arms_that_it_sweeps() -> None:
    swept = ["rank/select=fixed,gap", "search/dense=none", "track=none"]
    assert len(read([*swept, contrasts("gap>twin", "fixed>gap")], True).contrasts) == 2
    with pytest.raises(Faults, match="there is no arm 'budget' here"):
        read([*swept, contrasts("gap>budget")], True)


def test_a_plan_and_a_run_name_what_is_left_out_in_one_line_and_an_arm_that_finished_before_is_compared(
        conf: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = words(tmp_path, conf, "+exp=mine", contrasts("three>two", "four>two"))
    for plan in ("true", "false"):
        assert main([*arguments, "+arm/mine=two", f"plan={plan}"]) == 0
        assert f"left out: three > two, four > two ({OMITTED})\n" in capsys.readouterr().out
    assert [one.claim for one in read([*arguments, "+arm/mine=three"]).contrasts] == ["three > two"]
