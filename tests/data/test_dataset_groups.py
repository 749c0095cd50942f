from __future__ import annotations

import polars as pl

from memlab.data.dataset import groups
from tests.shared_evidence import world


def parts(table: pl.DataFrame, column: str) -> set[frozenset[int]]:
    return {frozenset(p["question"]) for p in table.partition_by(column)}


def test_questions_that_share_an_evidence_text_are_one_group_through_chains() -> None:
    # 0 and 1 share "a" (in different places), 1 and 2 share "b", 3 is alone
    made = world([(0, 0, "a"), (1, 4, "a"), (1, 5, "b"), (2, 0, "b"), (3, 0, "c")])
    assert parts(groups(*made, by="evidence"), "group") == {frozenset({0, 1, 2}), frozenset({3})}


def test_conversations_are_kept_whole() -> None:
    made = world([(0, 0, "a"), (1, 1, "b"), (2, 0, "c"), (3, 1, "d")], corpora=[7, 7, 9, 9])
    assert parts(groups(*made), "group") == {frozenset({0, 1}), frozenset({2, 3})}
    assert parts(groups(*made, by="evidence"), "group") == {frozenset({i}) for i in range(4)}


def test_a_question_without_evidence_is_a_group_of_its_own() -> None:
    questions, gold, turns = world([(0, 0, "a"), (1, 0, "a"), (2, 0, "b")])
    assert parts(groups(questions, gold.filter(pl.col("question") != 1), turns), "group") == {
        frozenset({0}), frozenset({1}), frozenset({2})}


def test_each_question_can_be_a_group() -> None:
    made = world([(0, 0, "a"), (1, 1, "a"), (2, 0, "a")], corpora=[0, 0, 0])
    assert groups(*made, by="question")["group"].to_list() == [0, 1, 2]


def test_one_memory_is_grouped_by_evidence() -> None:
    """A log of one person would else be a single group, over which nothing can be tested."""
    made = world([(0, 0, "a"), (1, 0, "a"), (2, 1, "b")], corpora=[0, 0, 0])
    for by in ("corpus", "auto"):
        assert parts(groups(*made, by=by), "group") == {frozenset({0, 1}), frozenset({2})}
