"""Models that FlagEmbedding runs: bge-m3 (dense vectors, sparse scores of pairs), and its rerankers.

The multi-vector score of bge-m3 is late interaction with ``embedder=bge_m3``, which reads its linear layer.

FlagEmbedding is an extra (``pip install 'memlab[flag]'``) and is imported when a model loads. It runs the first batch
of every call twice, to find a batch size that fits, so each call gets a long block of texts, the longest first.

Chen et al., M3-Embedding (2024). With w a token's learned weight (largest over its occurrences):

    sparse(q, p) = sum over tokens t in both texts of  w_q(t) * w_p(t)

Scores of rerankers are raw logits (for a language model that of the answer "Yes"). With transformers 5, FlagEmbedding
decodes and tokenises again, and cuts long pairs in its own way: on pairs beyond ``max_length`` its scores differ from
those of sentence-transformers' ``CrossEncoder``, which is memlab's reference for encoders.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from memlab.models.local.backend import Runtime, disable_progress_bars
from memlab.models.local.base import M3_HEAD, SPARSE_HEAD, ModelFiles, files_digest
from memlab.models.local.batching import tokenise
from memlab.models.local.loading import check_weights
from memlab.models.protocols import Floats, Ints, Role
from memlab.pipeline.stage import LocalPath, stage
from memlab.support.errors import MemlabError

FlagDtype = Literal["auto", "fp32", "fp16"]
Batch = Annotated[int, Field(ge=1)]

BLOCK = 16
"""Batches per call: running one of 16 batches twice costs 6 %, and results are still stored often."""

_WITH_BARS = ("FlagEmbedding.inference.embedder.encoder_only.m3", "FlagEmbedding.inference.reranker.encoder_only.base",
              "FlagEmbedding.inference.reranker.decoder_only.base")

_CLASSES = {"encoder": "FlagReranker", "llm": "FlagLLMReranker"}


def flag_embedding() -> Any:
    """Return the package FlagEmbedding; raises MemlabError if it is not installed."""
    try:
        package = importlib.import_module("FlagEmbedding")
    except ImportError as error:
        raise MemlabError(f"FlagEmbedding cannot be imported ({error})", fix="pip install 'memlab[flag]'") from error
    for name in _WITH_BARS:  # its progress bars would be drawn over memlab's own
        module: Any = importlib.import_module(name)
        module.tqdm, module.trange = lambda items, **_: items, lambda *bounds, **_: range(*bounds)
    return package


@lru_cache(maxsize=4)
def load(kind: str, folder: Path, devices: tuple[str, ...], dtype: str) -> Any:
    """Load FlagEmbedding's class ``kind``, once per process; with several devices it starts a process for each."""
    make = getattr(flag_embedding(), kind)
    disable_progress_bars()
    brain_float = {"use_bf16": True} if dtype == "bf16" else {}
    model = make(str(folder), use_fp16=dtype == "fp16", **brain_float, devices=list(devices))
    check_weights(model.model, folder)
    return model


@stage
class FlagModel(ModelFiles):
    """A model that FlagEmbedding runs."""

    max_length: Annotated[int, Field(ge=8)] = 8192  # tokens; the model's own limit
    batch: Batch = 16  # texts per batch; made smaller where memory runs out
    # fp32 on a CPU; on a GPU fp16, or bf16 (encoders: fp32) if the model's own files ask for its range
    dtype: FlagDtype = "auto"

    def _identity(self, kind: str, /, **settings: Any) -> dict[str, Any]:
        """Return a model's identity; the weights count by their digest, so a path never enters."""
        return {"is": kind, **settings, "weights": files_digest(self._folder()), "max_length": self.max_length,
                "dtype": self._runtime().dtype, "backend": "FlagEmbedding"}

    def _class(self) -> str:
        """Return the name of FlagEmbedding's class."""
        return "BGEM3FlagModel"

    def _model(self) -> Any:
        runtime = self._runtime()
        return load(self._class(), self._folder(), runtime.devices, runtime.dtype)

    def _runtime(self) -> Runtime:
        runtime = super()._runtime()
        no_bf16 = self._class() != _CLASSES["llm"]
        return replace(runtime, dtype="fp32") if runtime.dtype == "bf16" and no_bf16 else runtime


def by_length(texts: Sequence[str], size: int) -> Iterator[Ints]:
    """Yield positions of texts in blocks of ``size``, longest first (characters stand in for tokens).

    >>> [block.tolist() for block in by_length(["a", "bbb", "cc"], 2)]
    [[1, 2], [0]]
    """
    order = np.argsort([-len(text) for text in texts], kind="stable")
    for start in range(0, len(order), size):
        yield order[start : start + size]


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
        for block in by_length(texts, BLOCK * self.batch):
            out = self._model().encode([texts[i] for i in block], batch_size=self.batch, max_length=self.max_length)
            vectors = np.asarray(out["dense_vecs"], np.float32)
            yield block, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)  # fp16 norms are off by 1e-3

    def truncated(self, texts: Sequence[str], role: Role) -> NDArray[np.bool_]:
        """Return, for each text, whether the model sees only its beginning: shape (n,)."""
        del role
        return tokenise(self._model().tokenizer, texts, self.max_length + 1).lengths > self.max_length


@stage
class M3Scorer(FlagModel):
    """The sparse score of bge-m3 for pairs; every text is encoded once per call."""

    path: str | LocalPath | None = "BAAI/bge-m3"  # a folder, or a name on the hub
    name: str = "bge-m3"

    encodes_passages: ClassVar[bool] = True  # once each, whatever the number of pairs

    def identity(self) -> dict[str, Any]:
        """Return all that can change a score."""
        return self._identity("M3Scorer", mode="sparse")

    def score(self, queries: Sequence[str], passages: Sequence[str], pairs: Ints) -> Iterator[tuple[Ints, Floats]]:
        """Score pairs (n, 2) of positions in queries and passages; yield (positions in pairs (b,), scores (b,)).

        Passages are encoded in blocks and scored at once, so that only one block's token vectors are in memory.
        """
        used_queries = sorted(set(pairs[:, 0].tolist()))
        encoded_queries: dict[int, Any] = {}
        for block in by_length([queries[q] for q in used_queries], BLOCK * self.batch):
            rows = [used_queries[i] for i in block]
            encoded_queries.update(zip(rows, self._encode([queries[q] for q in rows])))
        used, where = np.unique(pairs[:, 1], return_inverse=True)
        order = np.argsort(where, kind="stable")
        bounds = np.searchsorted(where[order], np.arange(len(used) + 1))

        for block in by_length([passages[p] for p in used], BLOCK * self.batch):
            encoded = self._encode([passages[used[p]] for p in block])
            at = [order[bounds[p] : bounds[p + 1]] for p in block]
            scores = [_sparse(encoded_queries[int(pairs[i, 0])], passage)
                      for rows, passage in zip(at, encoded) for i in rows]
            yield np.concatenate(at), np.array(scores, np.float32)

    def _encode(self, texts: list[str]) -> list[Any]:
        out = self._model().encode(texts, batch_size=self.batch, max_length=self.max_length, return_dense=False,
                                   return_sparse=True)
        return list(out["lexical_weights"])

    def _model(self) -> Any:
        folder = self._folder()
        absent = [name for name in (SPARSE_HEAD, M3_HEAD) if not (folder / name).is_file()]
        if absent:  # FlagEmbedding would use random ones
            raise MemlabError(f"the model has no {' and no '.join(absent)}", where=str(folder),
                              fix="give a complete copy of bge-m3: cross_encoder.path=FOLDER")
        return super()._model()


def _sparse(query: dict[str, float], passage: dict[str, float]) -> float:
    return float(sum(float(weight) * float(passage[token]) for token, weight in query.items() if token in passage))


@stage
class FlagPairScorer(FlagModel):
    """One of FlagEmbedding's rerankers, from a folder or the hub."""

    kind: Literal["encoder", "llm"] = "encoder"
    # tokens per pair: a question and a turn; the model was trained up to 1,024
    max_length: Annotated[int, Field(ge=8)] = 512
    batch: Batch = 32  # pairs per batch; made smaller where memory runs out

    def identity(self) -> dict[str, Any]:
        """Return all that can change a score."""
        return self._identity("FlagPairScorer", kind=self.kind)

    def score(self, queries: Sequence[str], passages: Sequence[str], pairs: Ints) -> Iterator[tuple[Ints, Floats]]:
        """Score pairs (n, 2) of positions in queries and passages; yield (positions in pairs (b,), scores (b,))."""
        for block in by_length([queries[q] + passages[p] for q, p in pairs], BLOCK * self.batch):
            texts = [(queries[q], passages[p]) for q, p in pairs[block]]
            scores = self._model().compute_score(texts, batch_size=self.batch, max_length=self.max_length,
                                                 normalize=False)
            yield block, np.asarray(scores, np.float32).reshape(-1)

    def _class(self) -> str:
        return _CLASSES[self.kind]
