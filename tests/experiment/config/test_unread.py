"""Settings without an effect are refused, whatever sets them; helpers that others refer to are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from memlab.experiment.config.choices import own_choices
from memlab.experiment.config.instantiate import CONF, choice_settings
from memlab.experiment.harness.sweep import preset, read
from memlab.support.errors import Faults
from tests.experiment.config.files import faults_of, put

pytestmark = pytest.mark.slow

SMALL = ("search/dense=none", "track=none")


def test_settings_of_parts_that_no_arm_has_are_refused() -> None:
    words = ["embedder=bge_small", "learn.folds=all", "chat.model=x", "judge_chat=server", "rank.select={kk: 5}"]
    faults = faults_of(*words, *SMALL)
    assert faults[0].startswith("rank.select.kk: Fixed has no such setting; did you mean 'k'?")
    assert [fault.partition(": no part that these arguments choose reads")[0] for fault in faults[1:]] == words[:-1]


def test_what_one_arm_of_a_sweep_reads_or_says_where_it_runs_is_accepted() -> None:
    assert len(read(["rank/select=fixed,calibrated", "learn.folds=all", *SMALL], True).arms) == 2
    assert read([*SMALL, "embedder.device=cpu", "rank.select.k=10"]).arms[0].pipeline.select.k == 10


def test_a_preset_refuses_what_it_does_not_read() -> None:
    words = ["name=x", "plan=true", "out=x", "judge=f1", "track=none", "data.limit=3", "hydra/launcher=local",
             "contrasts=[]", "shards=2"]
    with pytest.raises(Faults) as raised:
        preset("search/dense=none", *words)
    for word in words:
        assert any(fault.startswith(f"{word}: this command does not read") for fault in raised.value.faults), word


@pytest.mark.parametrize(("text", "fault"), [
    ("rank: {selct: {k: 5}}", "rank.selct.k, so that it changes nothing; did you mean rank.select.k?"),
    ("rank: {select: {kk: 5}}", "rank.select.kk: Fixed has no such setting; did you mean 'k'"),
    ("my: {k: 5}", "no part that these arguments choose reads my.k"),
    ("learn: {folds: all}", "no part that these arguments choose reads learn.folds"),
    ("hydra: {mode: MULTIRUN, sweeper: {params: {+rank.selct.k: '3,5'}}}", "rank has no setting 'selct'"),
    ("hydra: {mode: MULTIRUN, sweeper: {params: {embedder: 'minilm,bge_small'}}}", "no part that these arguments"),
    ("hydra: {sweeper: {params: {rank.select.k: '3,5'}}}", "hydra.sweeper.params holds values to sweep; add -m")])
def test_a_file_that_sets_what_nothing_reads_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    place = put(tmp_path, exp__mine=f"# @package _global_\n{text}\n")
    assert any(fault in one for one in faults_of(f"conf_dir={place}", "+exp=mine", *SMALL))


def test_a_helper_that_a_value_refers_to_is_accepted_and_may_be_set(tmp_path: Path) -> None:
    word = "conf_dir=" + str(put(tmp_path, exp__mine="# @package _global_\nmy: {k: 5}\nrank: {select: {k: '${my.k}'}}\n"
                                 "arms: {five: {learn: {coverage: {depth: '${learn.ranker.model}'}}}}\n"
                                 "learn: {ranker: {model: m}}\n"))
    assert read([word, "+exp=mine", *SMALL]).arms[0].pipeline.select.k == 5
    assert read([word, "+exp=mine", *SMALL, "my.k=7"]).arms[0].pipeline.select.k == 7
    assert "my has no setting 'kk'; did you mean 'k'" in faults_of(word, "+exp=mine", "+my.kk=7", *SMALL)[0]


def test_shipped_presets_experiments_and_arms_set_settings_that_there_are() -> None:
    """Each part of a preset lies in a slot or in a setting of the run: a misspelt one would change nothing."""
    defaults = OmegaConf.load(CONF / "config.yaml")
    known = {str(slot).replace("/", ".") for entry in defaults.defaults if entry != "_self_" for slot in entry}
    known |= {str(key) for key in defaults} | {"hydra", "arms"}
    for name in own_choices(CONF):
        if name.startswith(("exp/", "system/", "profile/", "arm/")):
            for key, node in choice_settings(name).items():
                places = {key, *(f"{key}.{inner}" for inner in (node if isinstance(node, dict) else ()))}
                assert places & known or f"${{{key}." in str(choice_settings(name)), f"{name}: {key}"


def test_a_weight_is_changed_in_a_copy_of_best_and_on_its_command_line(tmp_path: Path) -> None:
    text = (CONF / "system" / "best_weights.yaml").read_text(encoding="utf-8")
    changed = text.replace('"lexical:turn.user": 0.0', '"lexical:turn.user": 0.7')
    assert changed != text
    chosen = [f"conf_dir={put(tmp_path, system__mine=changed)}", "system=mine", "track=none"]
    for more, weight in ((), .7), (("rank.score.weights={lexical\\:turn.user: 0.9}",), .9):
        assert read([*chosen, *more]).arms[0].pipeline.score.weights["lexical:turn.user"] == weight
