from __future__ import annotations

import dataclasses

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.experiment.config.choices import own_choices
from memlab.experiment.config.instantiate import CONF, choice_settings, find_class
from memlab.learn.folds import folds, in_folds, smallest_k
from memlab.pipeline.tables import frame
from memlab.support.errors import MemlabError
from tests.shared_evidence import world


def test_folds_are_balanced_seeded_and_no_more_than_groups() -> None:
    made = world([(q, 0, f"t{q // 2}") for q in range(40)])
    one = folds(*made, k=5, seed=3)
    assert sorted(one["fold"].value_counts()["count"]) == [8] * 5
    assert one.equals(folds(*made, k=5, seed=3))
    assert not one.equals(folds(*made, k=5, seed=4))
    assert folds(*world([(0, 0, "a"), (1, 0, "b")]), k=5)["fold"].n_unique() == 2
    with pytest.raises(MemlabError, match="cannot be split"):
        folds(*world([(0, 0, "a"), (1, 0, "a")]))


def test_all_holds_out_one_group_at_a_time() -> None:
    made = world([(q, q, "") for q in range(9)], corpora=[0, 0, 0, 0, 1, 1, 2, 2, 2])
    left_out = folds(*made, k="all")
    assert {frozenset(part["question"]) for part in left_out.partition_by("fold")} == {
        frozenset({0, 1, 2, 3}), frozenset({4, 5}), frozenset({6, 7, 8})}
    assert folds(*world([(q, 0, f"t{q}") for q in range(9)]), k="all")["fold"].n_unique() == 9


def test_every_choice_of_a_cross_fitted_stage_takes_its_folds_from_there() -> None:
    checked = []
    for choice in own_choices(CONF):
        plain = choice_settings(choice)
        target = str(plain.get("_target_", ""))
        cls = find_class(target, "", []) if target.startswith("memlab.learn.") else None
        if cls is None or "folds" not in {field.name for field in dataclasses.fields(cls)}:
            continue
        assert plain["by"] == "${learn.by}", choice
        if choice == "rank/score/cross_fit_weight":  # all groups but one, as published
            assert (cls.folds, "folds" in plain) == ("all", False)
        else:
            assert plain["folds"] == "${learn.folds}", choice
        checked.append(choice)
    assert len(checked) >= 5


def test_sessions_in_haystacks_of_two_folds_are_shared() -> None:
    questions, _, turns = world([(0, 0, "a"), (0, 1, "filler"), (1, 0, "filler"), (1, 1, "b")])
    parted = pl.DataFrame({"question": [0, 1], "fold": [0, 1]}, schema_overrides={"question": pl.Int32})
    rows = pl.DataFrame({"corpus": [1, 0, 0], "session": [0, 0, 1]}, schema_overrides=dict.fromkeys(
        ("corpus", "session"), pl.Int32))
    assert in_folds(rows, questions, turns, parted).tolist() == [[True, True, True], [True, False, True]]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2), st.sampled_from("abcdefghij")), min_size=1,
                unique_by=lambda e: e[:2]), st.integers(2, 5), st.integers(0, 5))
def test_no_evidence_text_lies_in_two_folds(evidence, k, seed) -> None:
    made = world([*evidence, (10, 0, "last"), (11, 0, "very last")])
    fold = dict(folds(*made, k=k, seed=seed).iter_rows())
    assert set(fold) == set(range(12))
    for text in "abcdefghij":
        assert len({fold[q] for q, _, t in evidence if t == text}) <= 1


def ranked_turns(turn_gold: list[int | None]):
    """One question; units are turns (session, turn): 0 (0,0), 1 (0,1), 2 (1,0), 3 (2,0), ranked 3, 1, 0, 2."""
    units = frame("units", {"unit": [0, 1, 2, 3], "corpus": [0] * 4, "session": [0, 0, 1, 2],
                            "turns": [[0], [1], [0], [0]], "level": ["turn"] * 4})
    ranking = frame("ranking", {"question": [5] * 4, "unit": [3, 1, 0, 2], "score": [4.0, 3.0, 2.0, 1.0],
                                "rank": [1, 2, 3, 4], "selected": [False] * 4})
    evidence = frame("evidence", {"question": [5] * len(turn_gold), "session": [0, 1][: len(turn_gold)],
                                  "turn": turn_gold})
    return ranking, units, evidence


def test_complete_evidence_in_sessions_and_in_turns() -> None:
    assert smallest_k(*ranked_turns([0, 0]), "session").rows() == [(5, 4, 4)]
    assert smallest_k(*ranked_turns([0]), "session").rows() == [(5, 2, 2)]  # any turn of session 0
    assert smallest_k(*ranked_turns([0]), "turn").rows() == [(5, 3, 3)]     # turn 0 itself
    assert smallest_k(*ranked_turns([None]), "turn").rows() == [(5, 2, 2)]  # only the session is known


def test_evidence_out_of_reach_is_never_complete() -> None:
    ranking, units, evidence = ranked_turns([0, 0])
    assert smallest_k(ranking.head(3), units, evidence, "session").rows() == [(5, None, 2)]
    assert smallest_k(ranking.head(1), units, evidence, "session").rows() == [(5, None, None)]
    assert smallest_k(ranking, units, evidence.head(0), "session").is_empty()
