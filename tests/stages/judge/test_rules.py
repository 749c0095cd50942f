"""Judges by rule; LoCoMo's answer score is worked out by hand."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from pydantic import ValidationError

from memlab.pipeline.stage import EmptyStage
from memlab.pipeline.tables import SCHEMAS, Tables
from memlab.stages.judge.cases import Judges
from memlab.stages.judge.rules import Contains, ExactMatch, TokenF1, abstains, parts_f1, same, token_f1, within
from memlab.stages.rank.select import Fixed
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.stages.judge.worlds import judged, one, world


@pytest.mark.parametrize(("response", "gold", "f1"), [
    ("7 May 2023", "7 May 2023", 1.0),
    ("It was 7 May", "7 May 2023", 2 * 2 / (4 + 3)),  # it wa 7 mai | 7 mai 2023
    ("running", "She runs", 2 * 1 / (1 + 2)),
    ("tea tea tea", "tea and tea", 2 * 2 / (3 + 2)),  # each occurrence counts once
    ("Sweden", "Norway", 0.0),
    ("", "Norway", 0.0),
    ("the", "the", 0.0),  # nothing is left of either
])
def test_token_f1(response: str, gold: str, f1: float) -> None:
    assert token_f1(response, gold) == pytest.approx(f1)


def test_multi_hop_averages_the_best_of_each_part() -> None:
    # pottery 1; camping trips: 2*1/(1+2); swimming 0
    assert parts_f1("I like: camping, pottery", "pottery, camping trips, swimming") == pytest.approx(
        (1 + 2 / 5 + 0) / 3)  # "I like: camping" has three stems: 2*1/(3+2)
    assert parts_f1("a, b", "b, ") == pytest.approx(0.5)  # an empty part is never matched
    assert parts_f1("", "x") == 0.0


def score(tables: Tables, tmp_path: Path) -> tuple[float | None, bool | None, str]:
    return judged(TokenF1(), tables, Store(tmp_path))[0]


def test_each_category_has_its_rule(tmp_path: Path) -> None:
    gold, response = "tea, milk", "tea"
    assert score(one(gold, response, "multi-hop"), tmp_path)[0] == pytest.approx(0.5)
    assert score(one(gold, response, "single-hop"), tmp_path)[0] == pytest.approx(2 / 3)
    assert score(one("tea; she hates coffee", "tea", "open-domain"), tmp_path)[:2] == (1.0, True)
    assert score(one("tea; she hates coffee", "tea", "temporal"), tmp_path)[0] == pytest.approx(2 * 1 / (1 + 4))
    assert score(one("tea; she hates coffee", "tea", "multi-session"), tmp_path)[0] == pytest.approx(2 / 5)


@pytest.mark.parametrize(("response", "right"), [
    ("No information available", 1.0), ("It is NOT MENTIONED anywhere.", 1.0), ("I do not know", 0.0), ("", 0.0),
    ("not  mentioned", 0.0),
])
def test_adversarial_wants_one_of_two_phrases(response: str, right: float, tmp_path: Path) -> None:
    assert score(one(None, response, "adversarial", abstain=True), tmp_path)[:2] == (right, right == 1.0)


def test_abstention_elsewhere_takes_any_refusal(tmp_path: Path) -> None:
    tables = one("You did not mention it.", "I do not know", "multi-session", abstain=True)
    assert score(tables, tmp_path)[:2] == (1.0, True)


def test_without_a_gold_answer_there_is_no_opinion(tmp_path: Path) -> None:
    assert score(one(None, "tea"), tmp_path) == (None, None, "there is no gold answer")


def test_the_threshold_decides(tmp_path: Path) -> None:
    tables = world([("q", "green tea", "single-hop", False, "tea")])  # F1 2/3
    for threshold, right in ((0.5, True), (2 / 3, True), (0.7, False)):
        assert judged(TokenF1(threshold=threshold), tables, Store(tmp_path))[0][1] is right
    with pytest.raises(ValidationError):
        TokenF1(threshold=0.0)


def test_only_one_sample_is_judged(tmp_path: Path) -> None:
    tables = world([("q", "tea", "single-hop", False, "tea"), ("q", "tea", "single-hop", False, "milk")])
    both = tables["answers"].with_columns(question=0, sample=tables["answers"]["question"])
    tables = tables.updated({"answers": both.cast(dict(tables["answers"].schema))})  # type: ignore[arg-type]
    assert [row[1] for row in judged(TokenF1(), tables, Store(tmp_path))] == [True]
    assert [row[1] for row in judged(dataclasses.replace(TokenF1(), sample=1), tables, Store(tmp_path))] == [False]


@pytest.mark.parametrize(("response", "gold", "exact", "contains"), [
    ("4 hours", "Four hours.", True, True), ("about 4 hours", "4 hours", False, True),
    ("14 hours", "4 hours", False, False),
    ("\u6211\u4f4f\u5728\u4e0a\u6d77\u3002", "\u4e0a\u6d77", False, True),  # "I live in Shanghai."
    ("\u4e0a\u6d77", "\u4e0a\u6d77", True, True), ("\u6d77\u4e0a", "\u4e0a\u6d77", False, False),
    ("\uc11c\uc6b8\uc5d0 \uc0b0\ub2e4", "\uc11c\uc6b8", False, True), ("40 hours", "4 hours", False, False),
    ("3.5 weeks", "35 weeks", False, False), ("$1,350", "1350", True, True), ("twenty-one", "21", True, True),
    ("twenty one", "21", False, False), ("Main Street", "Main St", False, False), ("hours 4", "4 hours", False, False),
    ("8 days", "7 days. 8 days (including the last day) is also acceptable.", True, True),
    ("9 days", "7 days. 8 days (including the last day) is also acceptable.", False, False), ("", "tea", False, False),
    ("anything", "!!", False, False),
    ("A", "A", True, True), ("a", "A", True, True), ("I got an A.", "A", False, True),
    ("It was a B", "A", False, False),
    ("A+", "A", False, False), ("A-", "A", False, False), ("The", "the", True, True), ("", "A", False, False),
    ("\U0001f44d", "\U0001f44d", True, True), ("\U0001f44e", "\U0001f44d", False, False),
    ("Sure \U0001f44d\ufe0f!", "\U0001f44d", False, True), ("Rome \U0001f600", "Rome", True, True),
    ("5 degrees", "-5 degrees", False, False), ("-5 degrees", "5 degrees", False, False),
    ("\u22125\u00b0C", "minus 5 degrees C", True, True),
    ("from 5-10 days", "10 days", False, True), ("(-5)", "-5", True, True),
    ("C", "C++", False, False), ("I used C++", "C", False, False), ("in C# and C++", "C++", False, True),
    ("\u20ac5", "$5", False, False), ("5", "$5", False, False), ("5 dollars", "$5", True, True),
    ("$5", "5 euros", False, False), ("it was 5 \u20ac.", "\u20ac5", False, True), ("$5", "5", True, True),
    ("50", "50%", False, False), ("50 percent", "50%", True, True), ("50%", "50", True, True),
    ("50", "50+", False, False),
    ("1 2", "1/2", False, False), ("\u00bd", "1/2", True, True), ("x > 5", "x < 5", False, False),
    ("user x", "user@x", False, False), ("UTC-2", "UTC+2", False, False), ("caf\u00e9", "cafe\u0301", True, True),
])
def test_same_and_within(response: str, gold: str, exact: bool, contains: bool) -> None:
    assert (same(response, gold), within(response, gold)) == (exact, contains)


@pytest.mark.parametrize("text", [
    "I don't know.", "You did not mention that.", "You haven’t mentioned a bus.", "This is not mentioned.",
    "No information available", "There is no information about your uncle.", "The information provided is not enough.",
    "I cannot answer this.", "I can't tell from our chats.", "You never told me.", "It is not specified.",
    "There's no mention of an iPad.", "I do not have any record of that.", "Unable to determine.",
    "I'm sorry, but I don't have enough information.", "It was never discussed.", "That is unknown.",
])
def test_a_refusal_is_seen(text: str) -> None:
    assert abstains(text)


@pytest.mark.parametrize("text", [
    "", "A lemon cake.", "Yes", "No", "You knew it: Paris.", "the information desk", "Not far from home",
    "It cannot be beaten", "She did not go", "You should mention it to her.", "He never eats meat",
])
def test_an_answer_is_no_refusal(text: str) -> None:
    assert not abstains(text)


def test_rule_judges(tmp_path: Path) -> None:
    tables = world([("q", "4 hours", "t", False, "It took 4 hours"), ("q", "none", "t", True, "I do not know"),
                    ("q", "none", "t", True, "none"), ("q", None, "t", False, "x")])
    store = Store(tmp_path)
    assert [v[:2] for v in judged(Contains(), tables, store)] == [(1.0, True), (1.0, True), (0.0, False), (None, None)]
    assert [v[:2] for v in judged(ExactMatch(), tables, store)] == [(0.0, False), (1.0, True), (0.0, False),
                                                                    (None, None)]


def test_several_and_none(tmp_path: Path) -> None:
    tables = one("tea", "green tea")
    made = Judges(judges=[ExactMatch(), Contains()]).run(tables, Store(tmp_path))["verdicts"]
    assert made.select("judge", "correct").rows() == [("exact", False), ("contains", True)]
    none = EmptyStage(writes=("verdicts",)).run(tables, Store(tmp_path))["verdicts"]
    assert none.is_empty()
    assert dict(none.schema) == SCHEMAS["verdicts"]
    with pytest.raises(MemlabError, match="two judges are called 'exact'"):
        Judges(judges=(ExactMatch(), Contains(name="exact")))
    with pytest.raises(MemlabError, match="Fixed is not a judge"):
        Judges(judges=(Fixed(),))
    with pytest.raises(ValueError, match="at least 1"):
        Judges(judges=())


def test_an_answer_without_its_text_is_told(tmp_path: Path) -> None:
    tables = one("tea", "milk")
    tables = tables.updated({"texts": tables["texts"].head(1)})
    with pytest.raises(MemlabError, match="question 0 was answered, but"):
        Contains().run(tables, Store(tmp_path))
