"""A command line is composed, and its settings are judged by the techniques that they meet."""

from __future__ import annotations

import pytest

from memlab.config.compose import compose

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
