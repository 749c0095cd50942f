from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.errors import MemlabError
from memlab.learn.folds import folds, groups, shared_sessions
from memlab.tables import frame, text_hash


def world(evidence: list[tuple[int, int, str]], corpora: list[int] | None = None):
    """Questions, evidence and turns; evidence is (question, session, text of that session)."""
    n = max(q for q, _, _ in evidence) + 1
    corpora = corpora or list(range(n))
    questions = frame("questions", {"question": list(range(n)), "corpus": corpora})
    gold = frame("evidence", {"question": [q for q, _, _ in evidence], "session": [s for _, s, _ in evidence]})
    turns = frame("turns", {"corpus": [corpora[q] for q, _, _ in evidence], "session": [s for _, s, _ in evidence],
                            "turn": [0] * len(evidence), "role": ["user"] * len(evidence),
                            "text_id": [text_hash(t) for _, _, t in evidence]})
    return questions, gold, turns.unique(maintain_order=True)


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


def test_folds_are_balanced_seeded_and_no_more_than_groups() -> None:
    made = world([(q, 0, f"t{q // 2}") for q in range(40)])
    one = folds(*made, k=5, seed=3)
    assert sorted(one["fold"].value_counts()["count"]) == [8] * 5
    assert one.equals(folds(*made, k=5, seed=3))
    assert not one.equals(folds(*made, k=5, seed=4))
    assert folds(*world([(0, 0, "a"), (1, 0, "b")]), k=5)["fold"].n_unique() == 2
    with pytest.raises(MemlabError, match="cannot be split"):
        folds(*world([(0, 0, "a"), (1, 0, "a")]))


def test_sessions_in_haystacks_of_two_folds_are_shared() -> None:
    questions, _, turns = world([(0, 0, "a"), (0, 1, "filler"), (1, 0, "filler"), (1, 1, "b")])
    parted = pl.DataFrame({"question": [0, 1], "fold": [0, 1]}, schema_overrides={"question": pl.Int32})
    assert shared_sessions(questions, turns, parted)["shared"].to_list() == [False, True, True, False]
    together = parted.with_columns(fold=pl.lit(0))
    assert not shared_sessions(questions, turns, together)["shared"].any()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2), st.sampled_from("abcdefghij")), min_size=1,
                unique_by=lambda e: e[:2]), st.integers(2, 5), st.integers(0, 5))
def test_no_evidence_text_lies_in_two_folds(evidence, k, seed) -> None:
    made = world([*evidence, (10, 0, "last"), (11, 0, "very last")])
    fold = dict(folds(*made, k=k, seed=seed).iter_rows())
    assert set(fold) == set(range(12))
    for text in "abcdefghij":
        assert len({fold[q] for q, _, t in evidence if t == text}) <= 1
