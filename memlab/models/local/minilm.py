"""The embedded MiniLM by torch and tokenizers alone: a question waits for one import of seconds less.

Sentence-transformers and transformers give the same vectors, bit by bit, and take five seconds of the processor to
import. They load every other model. Architecture: BERT (Devlin et al., NAACL 2019), its weights named as in their
file, mean pooling and unit length (Reimers and Gurevych, EMNLP 2019).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional


def load_minilm(folder: Path) -> MiniLM:
    """Return the model of a folder in fp32 on the CPU."""
    config, limits = (json.loads((folder / name).read_text(encoding="utf-8"))
                      for name in ("config.json", "sentence_bert_config.json"))
    bert = Bert(SimpleNamespace(**config), load_file(folder / "model.safetensors"))
    return MiniLM(bert, WordPieces(Tokenizer.from_file(str(folder / "tokenizer.json"))), limits["max_seq_length"])


class WordPieces:
    """The tokenizer of a BERT, as far as memlab asks one of transformers."""

    pad_token_id, unk_token_id = 0, 100
    all_special_ids = (0, 100, 101, 102, 103)  # [PAD], [UNK], [CLS], [SEP], [MASK]

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        tokenizer.no_padding()

    def __len__(self) -> int:
        return int(self.tokenizer.get_vocab_size())

    def __call__(self, texts: Sequence[str], *, max_length: int, add_special_tokens: bool = True,
                 **_: Any) -> dict[str, list[list[int]]]:
        """Return the token ids of texts, each cut to ``max_length`` tokens."""
        self.tokenizer.enable_truncation(max_length)
        rows = self.tokenizer.encode_batch(list(texts), add_special_tokens=add_special_tokens)
        return {"input_ids": [row.ids for row in rows]}

    def convert_ids_to_tokens(self, ids: Sequence[int]) -> list[str | None]:
        """Return the pieces of words of token ids; None for an id without one."""
        return [self.tokenizer.id_to_token(i) for i in ids]


class Bert(nn.Module):
    """The transformer: ids and mask (b, length) to token vectors (b, length, width)."""

    def __init__(self, config: SimpleNamespace, weights: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.config = config

        def linear(name: str) -> nn.Linear:
            layer = nn.Linear(1, 1)  # drawing random weights of the true size takes a quarter of a second
            layer.weight, layer.bias = (nn.Parameter(weights[f"{name}.{part}"]) for part in ("weight", "bias"))
            layer.out_features, layer.in_features = layer.weight.shape
            return layer

        def norm(name: str) -> nn.LayerNorm:
            layer = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
            layer.weight, layer.bias = (nn.Parameter(weights[f"{name}.{part}"]) for part in ("weight", "bias"))
            return layer

        def projection(name: str) -> nn.ModuleDict:
            return nn.ModuleDict({"dense": linear(f"{name}.dense"), "LayerNorm": norm(f"{name}.LayerNorm")})

        def layer(name: str) -> nn.ModuleDict:
            asked = {part: linear(f"{name}.attention.self.{part}") for part in ("query", "key", "value")}
            return nn.ModuleDict({
                "attention": nn.ModuleDict({"self": nn.ModuleDict(asked),
                                            "output": projection(f"{name}.attention.output")}),
                "intermediate": nn.ModuleDict({"dense": linear(f"{name}.intermediate.dense")}),
                "output": projection(f"{name}.output")})

        tables = {name: nn.Embedding.from_pretrained(weights[f"embeddings.{name}.weight"], freeze=False)
                  for name in ("word_embeddings", "position_embeddings", "token_type_embeddings")}
        self.embeddings = nn.ModuleDict({**tables, "LayerNorm": norm("embeddings.LayerNorm")})
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(
            layer(f"encoder.layer.{i}") for i in range(config.num_hidden_layers))})

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the token vectors; tokens outside the mask are not attended to."""
        parts: Any = self.embeddings
        layers: Any = self.encoder["layer"]
        places = torch.arange(ids.shape[1])
        x = parts.word_embeddings(ids) + parts.token_type_embeddings(torch.zeros_like(ids))
        x = parts.LayerNorm(x + parts.position_embeddings(places))
        attended = None if mask.all() else mask.bool()[:, None, None, :].expand(-1, 1, ids.shape[1], -1)
        for layer in layers:
            x = self._layer(layer, x, attended)
        return x

    def _layer(self, layer: Any, x: Tensor, attended: Tensor | None) -> Tensor:
        heads = (*x.shape[:2], self.config.num_attention_heads, -1)
        asked = layer.attention["self"]
        query, key, value = (asked[name](x).view(heads).transpose(1, 2) for name in ("query", "key", "value"))
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=attended)
        output = layer.attention.output
        x = output.LayerNorm(output.dense(mixed.transpose(1, 2).reshape(x.shape)) + x)
        output = layer.output
        return output.LayerNorm(output.dense(functional.gelu(layer.intermediate.dense(x))) + x)  # type: ignore[no-any-return]


class MiniLM(nn.Module):
    """The encoder with its tokenizer, as far as memlab asks a ``SentenceTransformer`` for it."""

    def __init__(self, bert: Bert, tokenizer: WordPieces, max_seq_length: int) -> None:
        super().__init__()
        self.auto_model, self.tokenizer, self.max_seq_length = bert, tokenizer, max_seq_length

    def __getitem__(self, at: int) -> MiniLM:
        """Return the part that holds the transformer."""
        return self

    def get_embedding_dimension(self) -> int:
        """Return the numbers of a vector, and of a token's vector."""
        return int(self.auto_model.config.hidden_size)

    def forward(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the token vectors (b, length, width) and their mean over the mask, of length 1, (b, width)."""
        mask = inputs["attention_mask"]
        tokens = self.auto_model(inputs["input_ids"], mask)
        weight = mask.unsqueeze(-1).expand(tokens.shape).to(tokens.dtype)
        mean = (tokens * weight).sum(1) / weight.sum(1).clamp(min=1e-9)
        return {"token_embeddings": tokens, "sentence_embedding": functional.normalize(mean, dim=1)}
