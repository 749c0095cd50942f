"""A command line is composed, and its settings are judged by the techniques that they meet."""

from __future__ import annotations

import os
from pathlib import Path

import hydra
import pytest

from memlab.config.compose import compose
from memlab.errors import Faults
from memlab.harness.sweep import read

pytestmark = pytest.mark.slow


def test_an_arm_for_every_value_and_what_they_have_in_common() -> None:
    made, faults = compose(["rank.select.k=3,5", "seed=7"], True)
    assert made is not None
    assert faults == []
    assert [arm.rank.select.k for arm in made.arms] == [3, 5]
    assert (made.base.seed, made.swept, made.multirun) == (7, ["rank.select.k"], True)


def test_an_experiment_is_a_sweep() -> None:
    composed, _ = compose(["+exp=adaptive_k"], False)
    assert composed is not None
    assert composed.multirun
    assert composed.swept == ["rank/select"]


def test_a_setting_that_all_of_a_swept_slot_have_needs_no_default_that_has_it() -> None:
    made, faults = compose(["rank/rerank=late_interaction,llm_listwise", "rank.rerank.pool=20"], True)
    assert made is not None
    assert faults == []
    assert [arm.rank.rerank.pool for arm in made.arms] == [20, 20]
    assert len({arm.rank.rerank._target_ for arm in made.arms}) == 2


@pytest.mark.parametrize(("words", "multirun", "told"), [
    (["+exp=adaptive_k", "rank.select.kk=3"], False, "rank.select has no setting 'kk'"),
    (["rank.select.kk=1,2"], True, "rank.select has no setting 'kk'; did you mean 'k'?"),
    (["rank/select=gap,fixed", "rank.select.k=3"], True,
     "rank/select is swept, and there is no such setting in gap. Fix: sweep only rank/select=fixed"),
    (["rank/rerank=late_interaction,llm_listwise", "rank.rerank.pol=20"], True, "did you mean 'pool'?"),
])
def test_a_setting_of_what_is_swept_is_judged_as_well(words: list[str], multirun: bool, told: str) -> None:
    _, faults = compose([*words, "rank.score.lvl=turn"], multirun)
    assert len(faults) == 2
    assert any(told in fault for fault in faults)


@pytest.mark.parametrize(("swept", "count"), [
    (["seed=range(1,100000000)"], "99,999,999"), (["seed=range(0,1e9)"], "1,000,000,000"),
    (["seed=range(1,2,0)"], "inf"), (["seed=shuffle(range(0,5000))"], "5,000"),
    (["seed=range(0,100)", "rank.select.k=range(1,101)"], "10,000")])
def test_too_many_arms_are_refused_before_they_are_composed(swept: list[str], count: str) -> None:
    configs, faults = compose(swept, True)
    assert configs is None
    assert any(f"asks for {count} arms, the limit is 1,000. Fix: sweep fewer values" in fault for fault in faults)


@pytest.mark.parametrize(("words", "multirun", "bad"), [
    (["seed=${nope}"], False, ["seed=${nope}"]),
    (["name=${oc.env:MISSING}"], False, ["name=${oc.env:MISSING}"]),
    (["seed=${shards}", "shards=${seed}"], False, ["seed=${shards}", "shards=${seed}"]),
    (["contrasts=[{arm: a, against: '${nope}'}]"], False, ["contrasts=[{arm: a, against: '${nope}'}]"]),
    (["chat.url=${nope}"], False, ["chat.url=${nope}"]), (["rank.select=${rank}"], False, ["rank.select=${rank}"]),
    (["hydra.mode=${nope}"], False, ["hydra.mode=${nope}"]), (["plan=${foo:1}"], False, ["plan=${foo:1}"]),
    (["rank.select.k=5,${nope}"], True, ["rank.select.k=5,${nope}"]),
    (["+exp=adaptive_k", "seed=${nope}"], False, ["seed=${nope}"]),
])
def test_an_override_that_refers_to_nothing_is_a_fault_among_the_others(
        words: list[str], multirun: bool, bad: list[str]) -> None:
    made, faults = compose([*words, "rank.score.lvl=turn"], multirun)
    assert made is not None  # without these overrides, so that what is wrong elsewhere is named as well
    assert [fault.partition(": cannot be resolved (")[0] for fault in faults if "lvl" not in fault] == bad
    assert len(faults) == len(bad) + 1


@pytest.mark.parametrize(("lines", "told"), [
    ("seed: ${oc.env:MISSING}", "seed: '${oc.env:MISSING}' cannot be resolved"),
    ("rank: {select: {k: '${nope}'}}", "rank.select.k: '${nope}' cannot be resolved"),
    ("contrasts: [1, {c: '${nope}'}]", "contrasts[1].c: '${nope}' cannot be resolved"),
    ("hydra: {mode: MULTIRUN, sweeper: {params: {seed: '1,${nope}'}}}", "hydra.sweeper.params.seed"),
    ("hydra: {mode: '${nope}'}", "hydra.mode"), ("plugins: ${nope}", "plugins: '${nope}' cannot be resolved"),
])
def test_a_file_that_refers_to_nothing_is_a_fault(tmp_path: Path, lines: str, told: str) -> None:
    (tmp_path / "exp").mkdir()
    (tmp_path / "exp" / "mine.yaml").write_text(f"# @package _global_\n{lines}\n", encoding="utf-8")
    made, faults = compose([f"conf_dir={tmp_path}", "+exp=mine", "rank.score.lvl=turn"], False)
    assert made is None
    assert any(told in fault for fault in faults)


def test_a_part_that_is_deleted_is_named_where_it_is_missed() -> None:
    _, faults = compose(["~chat", "query/expand=llm"], False)
    assert faults == ["query.expand.chat: '${chat}' cannot be resolved (Interpolation key 'chat' not found)"]


@pytest.mark.parametrize("word", ["contrasts.k=${oc.env:HOME}", "contrasts.k=1", "+contrasts.k=1", "contrasts.0.k=1",
                                  "~contrasts.k", "~contrasts.0"])
def test_a_name_where_a_list_has_numbers_is_a_fault(word: str) -> None:
    with pytest.raises(Faults, match=r"contrasts\."):
        read([word])


def test_a_part_of_a_value_cannot_be_deleted() -> None:
    with pytest.raises(Faults, match=r"~seed\.k: seed is a value, and has no settings to delete"):
        read(["~seed.k"])


def test_an_item_of_a_list_is_deleted_by_its_number() -> None:
    configs, faults = compose(["query/expand=llm", "contrasts=[a,b]", "~contrasts.0"], False)
    assert faults == []
    assert configs is not None
    assert configs.base.contrasts == ["b"]


def test_files_are_composed_again_once_one_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rank" / "select" / "mine.yaml"
    file.parent.mkdir(parents=True)
    composed = []

    def count(name: str, *args: object, **options: object) -> object:
        composed.append(name)
        return whole(name, *args, **options)

    whole = hydra.compose
    monkeypatch.setattr(hydra, "compose", count)

    def k(number: int) -> int:
        file.write_text(f"_target_: memlab.rank.select.Fixed\nk: {number}\n")
        configs, faults = compose([f"conf_dir={tmp_path}", "rank/select=mine"], False)
        assert faults == []
        assert configs is not None
        return int(configs.base.rank.select.k)

    assert k(3) == 3
    stamp = file.stat().st_mtime_ns
    file.write_text(file.read_text())
    os.utime(file, ns=(stamp, stamp))
    compose([], False)
    composed.clear()  # that of a line without the folder, which may be the first one in this process
    compose([f"conf_dir={tmp_path}", "rank/select=mine"], False)
    compose([], False)
    assert composed == []
    assert k(14) == 14
    assert composed != []
    composed.clear()
    compose([], False)
    assert composed == []
