"""Levels of a sweep: which job waits for which, and which arms share a job."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memlab.experiment.cluster.schedule import Step, bundle, levels


def test_one_arm_waits_for_no_preparation() -> None:
    assert [[str(s) for s in level] for level in levels([[0]], 1)] == [["arms:0:0/1"], ["report:0:0/1"]]


def test_shards_are_prepared_ranked_merged_and_reported() -> None:
    steps = levels([[0], [2]], 3, shards=2)
    assert [[str(s) for s in level] for level in steps] == [
        ["prepare:0,2:0/2", "prepare:0,2:1/2"],
        ["shard:0:0/2", "shard:0:1/2", "shard:2:0/2", "shard:2:1/2"],
        ["merge:0:0/2", "merge:2:0/2"],
        ["report:0,1,2:0/1"]]


def test_where_every_arm_is_under_way_elsewhere_only_the_report_is_left() -> None:
    assert levels([], 2) == [[Step("report", (0, 1))]]


@given(st.lists(st.sampled_from("abc"), max_size=20), st.integers(1, 5))
def test_every_arm_is_in_one_bundle_of_its_own_models(keys: list[str], limit: int) -> None:
    bundles = bundle(keys, limit)
    assert sorted(n for some in bundles for n in some) == list(range(len(keys)))
    assert all(len({keys[n] for n in some}) == 1 and 1 <= len(some) <= limit for some in bundles)
    for key in set(keys):  # no more jobs than there must be
        assert sum(keys[some[0]] == key for some in bundles) == -(-keys.count(key) // limit)


def test_what_is_shared_is_asked_encoded_and_scored_before_any_shard() -> None:
    steps = levels([[0], [1]], 2, shards=2, shared=[(0, 1)], writers=[1])
    assert [[str(s) for s in level] for level in steps[:3]] == [
        ["write:1:0/1"], ["prepare:0,1:0/2", "prepare:0,1:1/2"], ["score:0,1:0/2", "score:0,1:1/2"]]
    assert [step.task for step in levels([[0], [1]], 2, writers=[1])[0]] == ["prepare"]  # one part asks as it prepares
