"""A command line is composed, and its settings are judged by the techniques that they meet."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlab.experiment.config.compose import compose
from memlab.experiment.harness.sweep import read
from tests.experiment.config.files import put

pytestmark = pytest.mark.slow

FAULTY = {
    "rank.select.kk=3": "rank.select has no setting 'kk'; did you mean 'k'? (known: k)",
    "+rank.selct.k=5": "rank has no setting 'selct'; did you mean 'select'",
    "search.lexica.k1=3": "did you mean 'lexical'",
    "++learn.folz=all": "did you mean 'folds'",
    "+chat.modl=x": "did you mean 'model'",
    "learn.coverage.dpth=3": "did you mean 'depth'",
    "search.dense.index.blok=3": "did you mean 'block'",
    "data.path=chats": "data=synthetic is chosen, which reads no file; name the data set of this path: data=custom",
    "system.k=4": "there is no setting 'system'",
    "hydra.launcher.partition=x": "add hydra/launcher=slurm",
    "hydra.job.nme=x": "memlab reads nothing else of Hydra's than hydra.launcher and hydra.mode",
    "~rank.selct": "did you mean 'select'",
    "~seed.k": "seed is a value, and has no settings to delete",
    "contrasts.k=1": "the items of a list are numbered from 0",
    "~contrasts.0": "the items of a list are numbered from 0",
}


def test_all_faulty_arguments_are_answered_at_once_in_one_sentence_each() -> None:
    made, faults = compose(["rank.select.k=7", *FAULTY], False)
    assert made is not None
    assert made.base.rank.select.k == 7
    assert len(faults) == len(FAULTY)
    for argument, fault in FAULTY.items():
        (answer,) = [one for one in faults if one.startswith(f"{argument}: ")]
        assert fault in answer
        assert "\n" not in answer


def test_an_arm_for_every_value_and_what_they_have_in_common() -> None:
    made, faults = compose(["rank/rerank=late_interaction,llm_listwise", "rank.rerank.pool=20", "seed=7"], True)
    assert made is not None
    assert faults == []
    assert [arm.config.rank.rerank.pool for arm in made.arms] == [20, 20]  # a setting that the default, none, has not
    assert len({arm.config.rank.rerank._target_ for arm in made.arms}) == 2
    assert (made.base.seed, made.swept) == (7, ["rank/rerank"])
    made, _ = compose(["+exp=adaptive_k"], False)
    assert made is not None
    assert made.swept == ["rank/select"]


@pytest.mark.parametrize(("words", "fault"), [
    (["rank/select=gap,fixed", "rank.select.k=3"],
     "rank.select.k=3: rank.select has no setting 'k'; known: buffer, max_k, min_k, with rank/select=gap"),
    (["+rank.selct.k=3,5"], "+rank.selct.k=3,5: rank has no setting 'selct'"),
    (["seed=range(0,1e9)"], "this line asks for more than 1,000 arms. Fix: sweep fewer values"),
    (["seed=shuffle(range(0,5000))"], "this line asks for more than 1,000 arms"),
    (["seed=range(0,100)", "rank.select.k=range(1,101)"], "this line asks for more than 1,000 arms")])
def test_a_faulty_sweep_is_refused_once(words: list[str], fault: str) -> None:
    _, faults = compose(words, True)
    assert len(faults) == 1
    assert faults[0].startswith(fault)


@pytest.mark.parametrize(("words", "fault"), [
    (["seed=${nope}"], "seed: cannot be resolved (Interpolation key 'nope' not found)"),
    (["name=${oc.env:MISSING}"], "Environment variable 'MISSING' not found"),
    (["contrasts=[{arm: a, against: '${nope}'}]"], "contrasts[0].against: cannot be resolved"),
    (["rank.select=${rank}"], "cannot be resolved"),
    (["~chat", "query/expand=llm"], "query.expand.chat: cannot be resolved (Interpolation key 'chat' not found)")])
def test_a_reference_to_nothing_is_a_fault_at_its_place(words: list[str], fault: str) -> None:
    made, faults = compose([*words, "rank.score.lvl=turn"], False)
    assert made is None
    assert any(fault in one for one in faults)
    assert any("lvl" in one for one in faults)


def test_an_item_of_a_list_and_a_setting_are_deleted() -> None:
    configs, faults = compose(["query/expand=llm", "contrasts=[a,b]", "~contrasts.0", "rank/select=fixed_5",
                               "~rank.select.k"], False)
    assert faults == []
    assert configs is not None
    assert configs.base.contrasts == ["b"]
    assert configs.base.rank.select.k == 10  # the default of its class


def test_files_are_composed_again_once_one_has_changed(tmp_path: Path) -> None:
    for k in (3, 14):
        put(tmp_path, rank__select__mine=f"_target_: memlab.stages.rank.select.Fixed\nk: {k}\n")
        assert read([f"conf_dir={tmp_path}", "rank/select=mine", "search/dense=none"]).arms[0].pipeline.select.k == k
