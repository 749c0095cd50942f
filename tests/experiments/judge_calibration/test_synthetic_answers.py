"""Synthetic answers: they are right or wrong as stated, and the same every time."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_calibration.perturbations import list_items, outdated_values, perturb, reformat_date, renumber, reorder
from judge_calibration.synthetic_answers import RIGHT, WRONG, CalibrationSet, make_answers

from memlab.data.benchmarks import Builder
from memlab.stages.judge.rules import abstains, same, within
from memlab.support.text.normalise import accepted_answers, normalise_locomo
from tests.stages.judge.worlds import Row, world

pytestmark = pytest.mark.nightly

ROWS: list[Row] = [
    ("How many pens did I buy?", "7", "multi-session", False, ""),
    ("How many cups did I buy?", "nineteen", "multi-session", False, ""),
    ("How many days was I away?", "7 days. 8 days (including the last day) is also acceptable.",
     "temporal-reasoning", False, ""),
    ("How many days did it rain?", "9 days", "temporal-reasoning", False, ""),
    ("How many days did it snow?", "30 days", "temporal-reasoning", False, ""),
    ("When did Ann paint?", "7 May 2023", "temporal", False, ""),
    ("When did Bob sing?", "June 3rd, 2022", "temporal", False, ""),
    ("What does Ann like?", "pottery, camping and swimming", "multi-hop", False, ""),
    ("What does Bob like?", "Chess", "multi-hop", False, ""),
    ("Who did I meet?", "Sarah", "single-hop", False, ""),
    ("Who came late?", "Tom Miller", "single-hop", False, ""),
    ("Would Ann move?", "Likely no", "open-domain", False, ""),
    ("Would Bob move?", "Yes, he would", "open-domain", False, ""),
    ("What film should I see?", "The user would prefer old films.", "single-session-preference", False, ""),
    ("What did Ann bake?", "You did not mention it.", "multi-session", True, ""),
    ("What did Bob bake?", None, "adversarial", True, ""),
    ("What is unknown?", None, "single-hop", False, ""),
    ("What is blank?", " ?!", "single-hop", False, ""),
]


def frame_of(kit: CalibrationSet) -> pl.DataFrame:
    return pl.DataFrame(kit.answers, orient="row", schema={
        "question": pl.Int32, "kind": pl.String, "right": pl.Boolean, "text": pl.String, "why": pl.String})


def made() -> pl.DataFrame:
    return frame_of(make_answers(world(ROWS)))


def test_the_kit_is_the_same_every_time_and_another_by_seed() -> None:
    assert made().equals(made())
    assert not frame_of(make_answers(world(ROWS), seed=1)).equals(made())


def test_every_kind_is_made_where_it_can_be_and_counted_where_not() -> None:
    found = make_answers(world(ROWS))
    counts = Counter(f.kind for f in found.answers)
    assert set(counts) == {*WRONG, *RIGHT} - {"outdated"}
    assert all(counts[kind] + found.skipped[kind] == len(ROWS) for kind in (*WRONG, *RIGHT))
    assert all(f.right == (f.kind in RIGHT) and f.why for f in found.answers)
    kinds = {q: {f.kind for f in found.answers if f.question == q} for q in range(len(ROWS))}
    assert kinds[0] == {"vague", "other", "corrupted", "restated", "numbers"}
    assert kinds[5] == {"vague", "other", "corrupted", "restated", "dates"}
    assert kinds[7] == {"vague", "other", "subset", "restated", "reordered"}
    assert kinds[11] == {"restated"}  # likely: vague and specific answers could be right
    assert kinds[13] == {"vague"}  # a rubric is no answer
    assert kinds[14] == kinds[15] == {"other", "declined"}
    assert kinds[16] == kinds[17] == set()


def test_wrong_answers_are_wrong_and_right_ones_right() -> None:
    for question, kind, right, text, _ in made().iter_rows():
        gold = ROWS[question][1]
        if kind == "declined":
            assert abstains(text)
        elif ROWS[question][3]:
            assert not abstains(text)
        elif not right:
            assert not same(text, str(gold)), (gold, text)
            assert normalise_locomo(text) not in [normalise_locomo(a) for a in accepted_answers(str(gold))]
        elif kind in ("restated", "numbers"):
            assert within(text, str(gold)), (gold, text)


@given(st.integers(0, 10**6))
def test_counts_of_days_move_by_more_than_the_judge_forgives(seed: int) -> None:
    rows = frame_of(make_answers(world(ROWS[2:5]), seed=seed)).filter(pl.col("kind").is_in(["corrupted", "other"]))
    accepted_days = {0: (7, 8), 1: (9,), 2: (30,)}
    for question, _, _, text, _ in rows.iter_rows():
        assert min(abs(int(text.split()[0]) - n) for n in accepted_days[question]) > 1


@given(st.integers(0, 10**6), st.integers(0, 10**4))
def test_a_count_moves_by_two_or_more(seed: int, count: int) -> None:
    change = perturb(f"{count} apples", random.Random(seed))
    assert change is not None
    assert abs(int(change.now) - count) > 1


def test_paraphrases() -> None:
    assert list_items("Ann and her brother have been away") == []
    assert list_items("Rum or tea") == list_items("January, 2023") == list_items("tea") == list_items("tea, tea") == []
    assert list_items("Rum, tea, and a big cake") == ["Rum", "tea", "a big cake"]
    assert reorder("Rum, tea, and a big cake") == "a big cake, tea and Rum"
    assert renumber("100 miles") is renumber("3.5 weeks") is renumber("10-12 hours") is renumber("") is None
    assert reformat_date("The week before 9 June 2023") == "The week before June 9, 2023"
    assert reformat_date("99 June 2023") is None


def update(old: str, new: str, question: str, answer: str) -> dict[int, str]:
    build = Builder()
    for session, said in enumerate((old, new)):
        build.session(corpus=0, session=session, said_on=datetime(2023, 5, session + 1), name=f"s{session}")
        build.turn(corpus=0, session=session, turn=0, role="user", speaker=None, text=said, name=f"t{session}")
        build.evidence(question=0, session=session, turn=0)
    build.question(question=0, corpus=0, text=question, asked_on=None, name="q", answer=answer,
                   category="knowledge-update", abstain=False, scored=True)
    return outdated_values(build.tables())


def test_outdated_values_are_read_from_the_older_evidence() -> None:
    many = "How many recipes have I tried?"
    assert update("I tried two recipes", "I have now tried 3 recipes", many, "3") == {0: "2"}
    assert update("I ran for 5 km, 4 days ago", "I ran 7 km", "How far did I run?", "7 km") == {0: "5 km"}
    assert update("They offer $350,000", "now $400,000", "What was I offered?", "$400,000") == {0: "$350,000"}
    assert update("I tried two recipes, then 4 recipes", "3 recipes", many, "3") == {}  # two candidates
    assert update("I tried two recipes of the 9 recipes", "3 recipes of 9 recipes", many, "3") == {0: "2"}
    assert update("I tried recipes", "3 recipes", many, "3") == {}
    assert update("I live in Rome", "I live in Oslo", "Where do I live?", "Oslo") == {}
