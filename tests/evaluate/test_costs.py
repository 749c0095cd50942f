"""Dollars and milliseconds of an arm, recomputed by hand from what its manifest records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memlab.evaluate.costs import Price, latency, price_table, spending
from memlab.support.errors import MemlabError

GPT_4O = Price(2.5, 10.0, "2024-12", "MemoryStack's write-up")


def asked(replies: int, read: int, written: int, seconds: float = 0.0) -> dict[str, float]:
    return {"replies": replies, "prompt_tokens": read, "completion_tokens": written, "seconds": seconds}


def manifest(costs: dict[str, float] | None = None, **replies: Any) -> dict[str, Any]:
    return {"questions": 10, "costs": costs or {}, "replies": replies}


def test_memorystacks_tokens_cost_with_gpt_4o_what_its_author_prints() -> None:
    """Rerank 1,100 in and 50 out, answer 1,660 in and 50 out: about $.008, 33 times $.00024."""
    found = spending(manifest(rerank={"m": asked(10, 11_000, 500)}, answer={"m": asked(10, 16_600, 500)}),
                     {"m": GPT_4O})
    assert found.question == pytest.approx(2760 * 2.5e-6 + 100 * 1e-5) == pytest.approx(.0079)
    assert round(found.question / .00024) == 33
    assert (found.replies, found.read, found.written, found.writing) == (20, 27_600, 1_000, 0.0)


@pytest.mark.parametrize(("replies", "writing", "question", "unpriced"), [
    ({"extract": {"m": asked(4, 4_000_000, 1_000_000)}, "judge": {"m": asked(10, 10**9, 10**9)},
      "attribute": {"other": asked(10, 10**9, 10**9)}}, 20.0, 0.0, ()),  # judges are no part of a system
    ({}, 0.0, 0.0, ()),
    ({"extract": {"m": asked(1, 1_000_000, 0)}, "answer": {"own": asked(10, 10, 10)}}, 2.5, None, ("own",))])
def test_writing_is_paid_once_and_a_model_without_a_price_is_named(
        replies: dict, writing: float, question: float | None, unpriced: tuple[str, ...]) -> None:
    found = spending(manifest(**replies), {"m": GPT_4O})
    assert (found.writing, found.question, found.unpriced) == (writing, question, unpriced)


def test_a_question_waits_for_the_stages_and_for_their_replies() -> None:
    """Ten questions: .2 s of BM25, 1 s of cosines, and 5 s of replies to the reranker, whose own work is .1 s."""
    found = latency(manifest({"lexical": .2, "dense": 1.0, "rerank": .1, "chunk": 99.0},
                             rerank={"m": asked(10, 1, 1, seconds=5.0)}, judge={"m": asked(10, 1, 1, seconds=99.0)}))
    assert found == pytest.approx({"search": 120.0, "rerank": 510.0, "total": 630.0})


def test_own_prices_come_first_and_a_damaged_file_is_named(tmp_path: Path) -> None:
    own = tmp_path / "prices.yaml"
    assert price_table(own) == ({"gpt-4o": GPT_4O}, GPT_4O, 50)
    own.write_text("models: {gpt-5: {input: 1, output: 8, date: 2026-01, source: me}}")
    assert price_table(own)[0] == {"gpt-4o": GPT_4O, "gpt-5": Price(1.0, 8.0, "2026-01", "me")}
    own.write_text("models: {gpt-5: cheap}")
    with pytest.raises(MemlabError, match="the prices cannot be read"):
        price_table(own)
