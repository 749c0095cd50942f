"""Models of published architectures with random weights, and texts for them: speed needs no training.

bge-m3 (Chen et al. 2024) and bge-reranker-v2-m3 have the shape of XLM-RoBERTa-large with 8,194 positions: 24 layers of
1,024 numbers and a vocabulary of 250,002, 568 million weights. The tokenizer is the embedded encoder's, so only the
first 30,522 words of that vocabulary occur.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from memlab.models.local.backend import disable_progress_bars
from memlab.models.protocols import Ints
from memlab.support.paths import bundled_encoder

SPREAD = 0.05
"""Standard deviation of the weights. With the usual .02 all texts get nearly the same vector and score."""


@dataclass(frozen=True)
class Shape:
    """The shape of a transformer encoder."""

    hidden: int
    layers: int
    heads: int
    inner: int
    vocabulary: int = 250_002
    positions: int = 8194

    def flops(self, lengths: Ints) -> float:
        """Return the floating-point operations for texts of so many tokens, without the table of embeddings.

        Each token costs two operations per weight (four square matrices and two of the inner layer); each pair of
        tokens of a text costs 4 x hidden per layer (products of queries with keys, and of weights with values).

        >>> Shape(hidden=2, layers=1, heads=1, inner=8).flops(np.array([3]))
        360.0
        """
        weights = 4 * self.hidden**2 + 2 * self.hidden * self.inner
        each = 2.0 * weights * float(lengths.sum()) + 4.0 * self.hidden * float((lengths.astype(np.float64)**2).sum())
        return self.layers * each


LARGE = Shape(hidden=1024, layers=24, heads=16, inner=4096)
"""bge-m3 and bge-reranker-v2-m3."""

TINY = Shape(hidden=64, layers=2, heads=4, inner=128, vocabulary=30_522)
"""For a check of the code on a CPU."""


def tokenizer() -> Any:
    """Return the embedded encoder's tokenizer; these models have one type of token."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(bundled_encoder()), model_input_names=["input_ids", "attention_mask"])


def save_encoder(folder: Path, shape: Shape, device: str) -> Path:
    """Save an encoder with the two heads of bge-m3, as sentence-transformers and FlagEmbedding read it."""
    import torch

    _save("XLMRobertaModel", folder, shape, device, seed=0)
    modules = [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
               for i, (path, kind) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling")])]
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": shape.hidden, "pooling_mode_cls_token": True,
                    "pooling_mode_mean_tokens": False}))
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": shape.positions - 2}))
    for name, width in (("colbert_linear.pt", shape.hidden), ("sparse_linear.pt", 1)):
        torch.save(torch.nn.Linear(shape.hidden, width).state_dict(), folder / name)
    return folder


def save_reranker(folder: Path, shape: Shape, device: str) -> Path:
    """Save a cross-encoder with one label."""
    _save("XLMRobertaForSequenceClassification", folder, shape, device, seed=1)
    return folder


def texts(number: int, tokens: tuple[int, int], seed: int = 0) -> list[str]:
    """Return texts of common words, one token each; their lengths are drawn evenly on a logarithmic scale."""
    rng = np.random.default_rng(seed)
    numbers = tokenizer().get_vocab()
    words = np.array(sorted(word for word, at in numbers.items()
                            if 1996 <= at < 12_000 and word.isascii() and word.isalpha()))
    lengths = np.exp(rng.uniform(np.log(tokens[0]), np.log(tokens[1] + 1), number)).astype(int)
    return [" ".join(rng.choice(words, length)) for length in lengths]


def _save(kind: str, folder: Path, shape: Shape, device: str, seed: int) -> None:
    """Save a model in fp16, as large ones are published, with the tokenizer."""
    import torch
    import transformers

    labels: dict[str, Any] = {"num_labels": 1}
    config = transformers.XLMRobertaConfig(
        vocab_size=shape.vocabulary, pad_token_id=int(tokenizer().pad_token_id), hidden_size=shape.hidden,
        num_hidden_layers=shape.layers, num_attention_heads=shape.heads, intermediate_size=shape.inner,
        max_position_embeddings=shape.positions, type_vocab_size=1, initializer_range=SPREAD, **labels)
    disable_progress_bars()
    with torch.device(device):
        torch.manual_seed(seed)
        model = getattr(transformers, kind)(config)
    model.half().save_pretrained(folder)
    tokenizer().save_pretrained(folder)
