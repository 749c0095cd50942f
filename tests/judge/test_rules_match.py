"""Judges by rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlab.data.longmemeval import LongMemEval
from memlab.errors import MemlabError
from memlab.judge.cases import Judges
from memlab.judge.rules import Contains, ExactMatch, abstains, same, within
from memlab.rank.select import Fixed
from memlab.stage import EmptyStage
from memlab.store import Store
from memlab.tables import SCHEMAS
from tests.judge.worlds import judged, one, world


@pytest.mark.parametrize(("response", "gold", "exact", "contains"), [
    ("4 hours", "Four hours.", True, True),
    ("about 4 hours", "4 hours", False, True),
    ("14 hours", "4 hours", False, False),
    ("\u6211\u4f4f\u5728\u4e0a\u6d77\u3002", "\u4e0a\u6d77", False, True),  # "I live in Shanghai."
    ("\u4e0a\u6d77", "\u4e0a\u6d77", True, True),
    ("\u6d77\u4e0a", "\u4e0a\u6d77", False, False),
    ("\uc11c\uc6b8\uc5d0 \uc0b0\ub2e4", "\uc11c\uc6b8", False, True),
    ("40 hours", "4 hours", False, False),
    ("3.5 weeks", "35 weeks", False, False),
    ("$1,350", "1350", True, True),
    ("twenty-one", "21", True, True),
    ("twenty one", "21", False, False),
    ("Main Street", "Main St", False, False),
    ("hours 4", "4 hours", False, False),
    ("8 days", "7 days. 8 days (including the last day) is also acceptable.", True, True),
    ("9 days", "7 days. 8 days (including the last day) is also acceptable.", False, False),
    ("", "tea", False, False),
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
    ("$5", "5 euros", False, False),
    ("it was 5 \u20ac.", "\u20ac5", False, True), ("$5", "5", True, True),
    ("50", "50%", False, False), ("50 percent", "50%", True, True), ("50%", "50", True, True),
    ("50", "50+", False, False),
    ("1 2", "1/2", False, False), ("\u00bd", "1/2", True, True), ("x > 5", "x < 5", False, False),
    ("user x", "user@x", False, False), ("UTC-2", "UTC+2", False, False),
    ("caf\u00e9", "cafe\u0301", True, True),
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


def test_refusals_of_a_benchmark(shared_data: Path) -> None:
    path = shared_data / "longmemeval_oracle.dev.json.xz"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    gold = LongMemEval(variant="oracle", path=path).load()["gold"]
    plain = gold.filter(category="single-session-preference").height
    wrong = [a for a, c, known in gold.select("answer", "category", "abstain").iter_rows()
             if abstains(a) != known and c != "single-session-preference"]
    assert plain
    assert not wrong


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
