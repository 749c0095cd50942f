"""bge-m3 through FlagEmbedding: dense vectors, and sparse and multi-vector scores of pairs.

Chen et al., M3-Embedding (2024). With w a token's learned weight (largest over its occurrences) and e its vector:

    sparse(q, p)  = sum over tokens t in both texts of  w_q(t) * w_p(t)
    colbert(q, p) = mean over tokens i of q of  max over tokens j of p of  <e_i, e_j>   (``models.local.maxsim``)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from memlab.errors import MemlabError
from memlab.models.flagembedding.loading import BLOCK, FlagModel, by_length, run_smaller
from memlab.models.local.batching import spread, tokenise
from memlab.models.local.maxsim import Block, choose_products, mean_matches
from memlab.models.protocols import Floats, Ints, Role
from memlab.stage import LocalPath, stage

_HEADS = ("sparse_linear.pt", "colbert_linear.pt")


@stage
class M3Embedder(FlagModel):
    """The dense vectors of bge-m3; queries and documents are treated alike."""

    path: str | LocalPath | None = "BAAI/bge-m3"  # a folder, or a name on the hub
    name: str = "bge-m3"

    path_option: ClassVar = "embedder.path"

    def identity(self) -> dict[str, Any]:
        """Return all that can change a vector."""
        return self._identity("M3Embedder")

    def dim(self) -> int:
        """Return the length of a vector."""
        return int(json.loads((self._folder() / "config.json").read_text())["hidden_size"])

    def encode(self, texts: Sequence[str], role: Role) -> Iterator[tuple[Ints, Floats]]:
        """Yield (positions (b,), unit vectors (b, dim)), longest texts first."""
        del role

        def work(model: Any, block: Ints) -> Floats:
            out = run_smaller(lambda batch: model.encode([texts[i] for i in block], batch_size=batch,
                                                         max_length=self.max_length), self.batch)
            vectors = np.asarray(out["dense_vecs"], np.float32)
            unit: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)  # fp16 norms are off by 1e-3
            return unit

        yield from spread(by_length(texts, BLOCK * self.batch), [partial(work, m) for m in self._models()])

    def truncated(self, texts: Sequence[str], role: Role) -> NDArray[np.bool_]:
        """Return, for each text, whether the model sees only its beginning: shape (n,)."""
        del role
        return tokenise(self._models()[0].tokenizer, texts, self.max_length + 1).lengths > self.max_length


@stage
class M3Scorer(FlagModel):
    """The sparse or the multi-vector score of bge-m3 for pairs; every text is encoded once per call."""

    path: str | LocalPath | None = "BAAI/bge-m3"  # a folder, or a name on the hub
    name: str = "bge-m3"
    mode: Literal["sparse", "colbert"]

    encodes_passages: ClassVar[bool] = True  # once each, whatever the number of pairs

    def identity(self) -> dict[str, Any]:
        """Return all that can change a score."""
        return self._identity("M3Scorer", mode=self.mode)

    def score(self, queries: Sequence[str], passages: Sequence[str], pairs: Ints) -> Iterator[tuple[Ints, Floats]]:
        """Score pairs (n, 2) of positions in queries and passages; yield (positions in pairs (b,), scores (b,)).

        Passages are encoded in blocks and scored at once, so that only one block's token vectors are in memory.
        """
        if self.mode == "colbert":
            yield from mean_matches(queries, passages, pairs, self._token_vectors,
                                    choose_products(self.on_gpu(), self._runtime().dtype))
            return
        models = self._models()
        used_queries = sorted(set(pairs[:, 0].tolist()))
        encoded_queries: dict[int, Any] = {}
        for block in by_length([queries[q] for q in used_queries], BLOCK * self.batch):
            rows = [used_queries[i] for i in block]
            encoded_queries.update(zip(rows, self._encode(models[0], [queries[q] for q in rows])))
        used, where = np.unique(pairs[:, 1], return_inverse=True)
        order = np.argsort(where, kind="stable")
        bounds = np.searchsorted(where[order], np.arange(len(used) + 1))

        def work(model: Any, block: Ints) -> tuple[Ints, Floats]:
            encoded = self._encode(model, [passages[used[p]] for p in block])
            at = [order[bounds[p] : bounds[p + 1]] for p in block]
            scores = [_sparse(encoded_queries[int(pairs[i, 0])], passage)
                      for rows, passage in zip(at, encoded) for i in rows]
            return np.concatenate(at), np.array(scores, np.float32)

        blocks = by_length([passages[p] for p in used], BLOCK * self.batch)
        for _, result in spread(blocks, [partial(work, model) for model in models]):
            yield result

    def _token_vectors(self, texts: Sequence[str], role: Role) -> Iterator[Block]:
        """Yield blocks of one unit vector per token, each on the device of its model."""
        del role  # queries and passages are treated alike
        import torch

        def work(model: Any, device: str, block: Ints) -> tuple[Any, Any]:
            rows = [torch.from_numpy(row) for row in self._encode(model, [texts[i] for i in block])]
            lengths = torch.tensor([len(row) for row in rows], device=device)
            padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).to(device)
            return padded, torch.arange(padded.shape[1], device=device) < lengths[:, None]

        workers = [partial(work, *lane) for lane in zip(self._models(), self._runtime().devices, strict=True)]
        for block, (vectors, kept) in spread(by_length(texts, BLOCK * self.batch), workers):
            yield block, vectors, kept, None

    def _encode(self, model: Any, texts: list[str]) -> list[Any]:
        sparse = self.mode == "sparse"
        out = run_smaller(lambda batch: model.encode(texts, batch_size=batch, max_length=self.max_length,
                                                     return_dense=False, return_sparse=sparse,
                                                     return_colbert_vecs=not sparse), self.batch)
        encoded: list[Any] = out["lexical_weights" if sparse else "colbert_vecs"]
        return encoded

    def _models(self) -> tuple[Any, ...]:
        folder = self._folder()
        absent = [name for name in _HEADS if not (folder / name).is_file()]
        if absent:  # FlagEmbedding would use random ones
            raise MemlabError(f"the model has no {' and no '.join(absent)}", where=str(folder),
                              fix="give a complete copy of bge-m3: cross_encoder.path=FOLDER")
        return super()._models()


def _sparse(query: dict[str, float], passage: dict[str, float]) -> float:
    return float(sum(float(weight) * float(passage[token]) for token, weight in query.items() if token in passage))
