"""Costs of inputs: tokens as far as the model reads, and what pairs share."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from memlab.models import protocols

READER = SimpleNamespace(token_limit=lambda: 50)


def reading(tokens: float) -> float:
    return (tokens + protocols.MARKERS) * (1 + (tokens + protocols.MARKERS) * protocols.ATTENTION)


def test_a_text_costs_its_tokens_up_to_the_limit() -> None:
    costs = protocols.text_costs(READER, ["x" * 40, "x" * 200, "x" * 9000])
    assert costs.tolist() == pytest.approx([reading(10), reading(50), reading(50)], rel=1e-5)
    assert protocols.text_costs(SimpleNamespace(max_length=5), ["x" * 9000])[0] == pytest.approx(reading(5))
    assert protocols.text_costs(SimpleNamespace(), ["x" * 9000])[0] == pytest.approx(reading(2250))  # no limit is known


def test_a_cross_encoder_reads_both_texts_of_each_pair() -> None:
    pairs = np.array([[0, 0], [0, 1], [1, 1]])
    costs = protocols.pair_costs(SimpleNamespace(), ["x" * 8, "x" * 16], ["x" * 40, "x" * 80], pairs)
    assert costs.tolist() == pytest.approx([reading(12), reading(22), reading(24)], rel=1e-5)


def test_pairs_share_the_passage_that_late_interaction_encodes_once() -> None:
    pairs = np.array([[0, 0], [1, 0], [1, 1]])
    costs = protocols.pair_costs(SimpleNamespace(encodes_passages=True), ["x", "x" * 900], ["x" * 40, "x" * 80], pairs)
    short, long = reading(10) * (.5 + protocols.PRODUCT), reading(20) * (1 + protocols.PRODUCT)
    assert costs.tolist() == pytest.approx([short, short, long], rel=1e-5)


def test_a_request_costs_its_prompt_and_a_reply() -> None:
    long = protocols.Message("system", "x" * 40), protocols.Message("user", "x" * 60)
    prompts = [protocols.Prompt(long), protocols.Prompt((protocols.Message("user", ""),))]
    assert protocols.prompt_costs(prompts).tolist() == [protocols.REPLY + 25, protocols.REPLY]
