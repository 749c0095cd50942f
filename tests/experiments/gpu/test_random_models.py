from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from gpu.random_models import TINY, Shape, save_encoder, save_reranker, texts, tokenizer
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig

from memlab.models.local.cross_encoder import CrossEncoderScorer
from memlab.models.local.embedder import SentenceEmbedder

pytestmark = pytest.mark.nightly


def test_operations_are_those_of_the_matrix_products_of_a_layer() -> None:
    with FlopCounterMode(display=False) as counter:
        hidden, inner, tokens = 8, 16, 5
        x = torch.randn(tokens, hidden)
        q, k, v = (x @ torch.randn(hidden, hidden) for _ in range(3))
        out = (q @ k.T) @ v @ torch.randn(hidden, hidden)
        out @ torch.randn(hidden, inner) @ torch.randn(inner, hidden)
    shape = Shape(hidden=hidden, layers=1, heads=1, inner=inner)
    assert shape.flops(np.array([tokens])) == counter.get_total_flops()
    assert shape.flops(np.array([tokens, tokens])) == 2 * shape.flops(np.array([tokens]))


def test_texts_have_the_tokens_that_were_asked_for() -> None:
    lengths = [len(tokenizer()(text, add_special_tokens=False)["input_ids"]) for text in texts(50, (3, 20))]
    assert min(lengths) >= 3
    assert max(lengths) <= 20
    assert texts(5, (3, 20)) == texts(5, (3, 20))


def test_models_are_read_by_the_classes_that_read_real_ones(tmp_path: Path) -> None:
    encoder, reranker = save_encoder(tmp_path / "e", TINY, "cpu"), save_reranker(tmp_path / "r", TINY, "cpu")
    assert AutoConfig.from_pretrained(encoder).hidden_size == TINY.hidden
    assert {file.name for file in encoder.glob("*.pt")} == {"colbert_linear.pt", "sparse_linear.pt"}
    model = SentenceEmbedder(path=str(encoder), name="random", device="cpu")
    (_, vectors), = model.encode(["a walk", "a cat and a dog"], "document")
    assert vectors.shape == (2, TINY.hidden)
    (_, scores), = CrossEncoderScorer(path=str(reranker), name="random", device="cpu").score(
        ["who"], ["a walk", "a cat and a dog"], np.array([[0, 0], [0, 1]]))
    assert scores[0] != scores[1]
