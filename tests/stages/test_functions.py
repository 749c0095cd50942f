"""Stages from functions: their settings and faults, what they see, and when an arm is another one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memlab.pipeline.stage import spec_digest
from memlab.pipeline.tables import Tables
from memlab.stages.functions import fusion, reranker, retriever
from memlab.stages.rank.score import Score
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.small import lexical, lives


def ranked(**stages: Any) -> Tables:
    return lexical(**stages).run(lives().load(), Store())


def test_a_sum_of_z_scores_is_the_weighted_score() -> None:
    @fusion
    def total(lanes: dict[str, Any]) -> Any:
        return sum((lane - lane.mean()) / lane.std() for lane in lanes.values())

    assert ranked(score=total())["ranking"]["unit"].equals(ranked(score=Score())["ranking"]["unit"])


def test_a_search_sees_what_was_said_by_the_questions_day_and_leaves_out_what_is_no_number() -> None:
    @retriever
    def length(question: str, texts: list[str], *, least: int = 0) -> list[float]:  # noqa: ARG001
        return [len(text) if len(text) >= least else np.nan for text in texts]

    every, long, visible = (ranked(**search)["ranking"].select("question", "unit").sort("question", "unit")
                            for search in ({"lexical": length()}, {"lexical": length(least=60)}, {}))
    assert every.equals(visible)
    assert 0 < long.height < every.height


def test_a_reranker_orders_the_head_and_its_source_is_a_part_of_the_arm() -> None:
    @reranker
    def short(question: str, texts: list[str]) -> list[int]:  # noqa: ARG001
        return [-len(text) for text in texts]

    one = short

    @reranker
    def short(question: str, texts: list[str]) -> list[int]:  # noqa: ARG001
        return [-2 * len(text) for text in texts]

    head = ranked(rerank=one(pool=5))["ranking"].filter(question=0).head(6)
    assert head["rerank"].drop_nulls().len() == 5
    assert head["rerank"][:5].is_sorted(descending=True)
    assert spec_digest(one()) != spec_digest(short()) != spec_digest(short(pool=5))


def test_faults_name_the_function_and_the_setting() -> None:
    @reranker
    def half(question: str, texts: list[str]) -> list[float]:  # noqa: ARG001
        return [0.0] * (len(texts) // 2)

    with pytest.raises(MemlabError, match=r"half: gave scores of the shape .* return one number for each"):
        ranked(rerank=half())
    with pytest.raises(MemlabError, match=r"the setting power has no type.*write \*, power: float = 0.5"):
        @retriever
        def untyped(question: str, texts: list[str], *, power=1) -> list[float]:  # type: ignore[no-untyped-def]
            return [power] * len(texts)
