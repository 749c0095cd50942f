"""LoCoMo's answer score, every case worked out by hand."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from pydantic import ValidationError

from memlab.judge.rules import TokenF1, parts_f1, token_f1
from memlab.store import Store
from memlab.tables import Tables
from tests.judge.worlds import judged, one, world


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
