"""The arms of a command line, their names, and what stays the same when only places change."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from huggingface_hub import constants
from omegaconf import OmegaConf
from rich.console import Console

from memlab.experiment.config.compose import compose
from memlab.experiment.harness.plan import print_plan
from memlab.experiment.harness.sweep import arm_name, read
from memlab.stages.rank.select import Fixed
from memlab.store import Store
from memlab.support.errors import Faults
from tests.data.official_records import conversation, write

pytestmark = pytest.mark.slow

LEXICAL = ["search/dense=none", "track=none"]


def names(*words: str, multirun: bool = False) -> list[str]:
    return [a.name for a in read([*words, *LEXICAL], multirun).arms]


def test_the_command_is_known_to_every_arm_without_its_keys_and_changes_no_digest() -> None:
    words = ["rank.select.k=3,5", "chat.url=https://me:secret@host/v1", *LEXICAL]
    arms = read(words, multirun=True).arms
    assert {arm.command for arm in arms} == {
        "memlab run -m rank.select.k=3,5 chat.url=https://***@host/v1 " + " ".join(LEXICAL)}
    assert [arm.digest() for arm in arms] == [replace(arm, command="").digest() for arm in arms]


def test_sizes_of_haystacks_are_folders_and_not_names() -> None:
    arms = read(["data.grow=1,3", "rank/select=fixed,gap", *LEXICAL], multirun=True).arms
    assert [(arm.arms_folder().name, arm.name) for arm in arms] == [
        ("synthetic", "fixed"), ("synthetic", "gap"), ("synthetic-x3", "fixed"), ("synthetic-x3", "gap")]
    assert len({arm.digest() for arm in arms}) == 4
    assert names("data.pool=true") == ["dense=none"]


def test_arms_of_a_sweep_are_called_by_what_was_swept() -> None:
    assert names("rank/select=fixed,gap", "read/measure=turn", multirun=True) == ["fixed", "gap"]
    assert names("rank.select.k=3,5", "rank/score=rrf,zscore", multirun=True) == [
        "k=3+rrf", "k=3+zscore", "k=5+rrf", "k=5+zscore"]
    assert names("seed=1,2", "rank/select=gap", multirun=True) == ["seed=1", "seed=2"]


@pytest.mark.parametrize(("words", "name"), [
    (["search.dense.depth=10"], "dense.depth=10"), (["search.lexical.depth=10"], "lexical.depth=10"),
    (["write/chunk=round"], "chunk=round"), (["read/measure=round"], "measure=round"), (["system=best"], "best"),
    (["rank.select.k=1_0"], "k=10"), (["rank/select=fixed_5", "~rank.select.k"], "fixed_5+k=10"),
    (["rank/select=gap", "rank.select.buffer=2", "search/dense=none"], "gap+buffer=2+dense=none"),
    (["search/dense=none", "data.limit=3", "out=x", "seed=4"], "dense=none")])
def test_a_name_says_which_setting_and_which_value(words: list[str], name: str) -> None:
    configs, faults = compose(words, False)
    assert configs is not None
    assert faults == []
    assert arm_name(configs.base, configs.overrides, []) == name


@pytest.mark.parametrize(("words", "multirun", "names"), [
    (["rank.select.k=5,${seed}", "seed=3"], True, ["k=5", "k=3"]),
    (["rank.select.k=${seed}", "seed=3"], False, ["k=3"]),
    (["name=7"], False, ["7"]),
    (["name=in ${out} with ${hydra.runtime.choices.embedder}"], False, ["in runs with minilm"])])
def test_a_reference_is_named_by_its_value(words: list[str], multirun: bool, names: list[str]) -> None:
    assert [arm.name for arm in read(words, multirun).arms] == names


def test_the_digest_forgets_places_and_keeps_values(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    here, there = (write(tmp_path / p, [conversation()]) for p in ("a.json", "b/b.json"))

    def digest(*words: str) -> str:
        given = {word.partition("=")[0]: word for word in ["data=locomo", f"data.path={here}", *LEXICAL, *words]}
        (arm,) = read([*given.values()]).arms
        return arm.digest()

    first = digest()
    assert digest(f"data.path={there}", "out=elsewhere", "store=far", "name=x", "track=wandb", "seed=3") == first
    assert digest("rank.select.k=11") != first
    assert digest("rank/select=fixed_10") == first  # the same values, whatever the file
    assert digest("data.limit=2") != first


def test_objects_are_those_of_the_configuration() -> None:
    (arm,) = read(["rank.select.k=7", "out=here", "seed=5", *LEXICAL]).arms
    assert arm.pipeline.select == Fixed(k=7)
    assert (arm.out, arm.seed) == (Path("here"), 5)
    assert "k: 7" in arm.config
    assert not {"out", "hydra", "store", "plan"} & set(OmegaConf.create(arm.config))


@pytest.mark.parametrize(("words", "multirun", "fault"), [
    (["rank/select=fixed,gap"], False, "rank/select has several values; add -m"),
    (["rank/select=fixed,fixed_10"], True, "arms of this sweep are the same configuration: fixed, fixed_10"),
    (["rank/select=fixed,gap", "name=x"], True, "2 arms of this sweep are named 'x'"),
    (["data=locomo", "data.path=/nowhere.json"], False, "data: /nowhere.json: no such file"),
    (["contrasts=[{arm: a}]"], False, "contrasts[0]: expected arm, comparator, metric and direction"),
    (["contrasts=[{arm: a, comparator: b, metric: m, direction: greatr}]"], False, "did you mean 'greater'"),
    (["shards=1000000000"], False, "shards: 1,000,000,000 parts, the limit is 10,000"),
    (["rank.select=3"], False, "rank.select: nothing is chosen here"), (["seed=abc"], False, "seed: "),
    (["plan=perhaps"], False, "plan: "), (["rank/select=null"], False, "must be a string or a list"),
    (["~contrasts"], False, "cannot be deleted"), (["contrasts=.."], False, "contrasts: expected a list, given '..'"),
    (["contrasts={a: 1}"], False, "contrasts={a: 1}: does not fit what is there"),
    (["contrasts=[3]"], False, "contrasts[0]: expected arm, comparator"), (["++store=???"], False, "no value"),
    (["contrasts=[{1: 2}]"], False, "contrasts[0]: expected arm, comparator"),
    (["plugins.k=null"], False, "plugins.k=null: "),
    ([f"contrasts=[{','.join(['{arm: a, comparator: b, metric: m}'] * 4)}]"], False, "4 are declared, at most 3"),
    ([f"contrasts=[{','.join(['{arm: a, comparator: constant, metric: curve/m}'] * 21)}]"], False,
     "21 are declared, at most 20"),
])
def test_what_cannot_be_a_sweep_is_refused(words: list[str], multirun: bool, fault: str) -> None:
    with pytest.raises(Faults) as raised:
        read([*words, *LEXICAL], multirun)
    assert fault in str(raised.value)


def test_models_that_are_not_here_stop_a_run_together_and_a_plan_not_at_all(
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    asked = ["embedder=bge_small,e5_base,minilm", f"store={tmp_path}", "track=none"]
    with pytest.raises(Faults) as raised:
        read(asked, multirun=True)
    assert [fault.split("'")[1] for fault in raised.value.faults] == ["BAAI/bge-small-en-v1.5", "intfloat/e5-base-v2"]

    sweep = read([*asked, "plan=true"], multirun=True)
    assert [arm.name for arm in sweep.arms] == ["bge_small", "e5_base", "minilm"]
    assert list(sweep.unready) == ["bge_small", "e5_base"]
    shown = StringIO()
    print_plan(sweep, Store(tmp_path), Console(file=shown, width=100))
    lines = shown.getvalue().splitlines()
    states = [next(line.split("│")[1].strip() for line in lines if name in line) for name in ("bge_small", "minilm")]
    assert states == ["no model", "to run"]
    assert sum("the model hub did not give" in line for line in lines) == 2
