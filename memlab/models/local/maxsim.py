"""MaxSim: the best matching token of a passage for each token of a query, on the device that holds the passage.

    score(q, p) = mean over tokens i of q of  max over tokens j of p of  <q_i, p_j>

Khattab & Zaharia, ColBERT (SIGIR 2020), with the mean in place of their sum: the order within a query is the same,
and scores of queries of different lengths become comparable (unit vectors: between -1 and 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from memlab.errors import MemlabError
from memlab.models.local.batching import attempt
from memlab.models.protocols import Floats, Ints, Role

Products = Literal["fp32", "fp16"]
"""The number format of inner products. Half the bits are several times as fast on a GPU. fp16 moves MiniLM's scores by
1.1e-4 at most (60 questions and 300 turns of LoCoMo, on a CPU), less than an encoder in fp16 does. bf16 keeps three
bits fewer, and unit vectors do not need its range. TF32 would be a switch of the whole process, also for the rotary
position embeddings of an encoder that runs at the same time, which need all bits."""

Block = tuple[Ints, Any, Any, Ints | None]
"""Positions (b,), token vectors (b, length, dim) as a tensor, which of them count (b, length) as a tensor, and the
vocabulary ids of the tokens (b, length), where each stands for a word."""

Encode = Callable[[list[str], Role], Iterator[Block]]
"""Texts to blocks of unit vectors, each on the device that computed it."""

CELLS, GPU_CELLS = 1 << 24, 1 << 27
"""Token products in memory at a time (64 MB in fp32; 512 MB on a GPU, where small steps would leave it idle)."""

_room: dict[str, int] = {}
"""Token products of each device that ran out of memory."""


def choose_products(on_gpu: bool, dtype: str) -> Products:
    """Return fp16 for an encoder that runs in half precision on a GPU, whose vectors hold no more; else fp32."""
    return "fp16" if on_gpu and dtype != "fp32" else "fp32"


def mean_matches(queries: Sequence[str], passages: Sequence[str], pairs: Ints, encode: Encode,
                 products: Products) -> Iterator[tuple[Ints, Floats]]:
    """Score pairs (n, 2) of positions in queries and passages; yield (positions in pairs (b,), scores (b,))."""
    for where, best, starts in best_matches(queries, passages, pairs, encode, products):
        lengths = np.diff(starts)[:, None]
        means = (np.add.reduceat(best, starts[:-1], axis=0) / lengths).astype(np.float32)  # (queries, passages)
        yield where.reshape(-1), means.reshape(-1)


def best_matches(queries: Sequence[str], passages: Sequence[str], pairs: Ints, encode: Encode,
                 products: Products) -> Iterator[tuple[Ints, Floats, Ints]]:
    """Yield (positions in pairs (q, p), best products of their query tokens (t, p), where queries begin (q + 1,)).

    Every passage is encoded once, and all its pairs are scored while its token vectors are in memory.
    """
    import torch

    if not len(pairs):
        return
    used_queries, query_of = np.unique(pairs[:, 0], return_inverse=True)
    used, passage_of = np.unique(pairs[:, 1], return_inverse=True)
    vectors, starts = query_vectors([queries[i] for i in used_queries], encode)
    order = np.lexsort((query_of, passage_of))  # pairs by passage, then by query
    bounds = np.searchsorted(passage_of[order], np.arange(len(used) + 1))
    for batch, tokens, kept, _ in encode([passages[i] for i in used], "document"):
        for rows, facing in _facing(batch, bounds, query_of[order]):
            index = np.concatenate([np.arange(starts[q], starts[q + 1]) for q in facing])
            asked = vectors[torch.from_numpy(index)].to(tokens.device)
            best = best_products(asked, tokens[rows], kept[rows], products)
            where = np.stack([order[bounds[p]:bounds[p + 1]] for p in batch[rows]], axis=1)
            yield where, best.astype(np.float32), np.concatenate([[0], np.cumsum(np.diff(starts)[facing])])


def query_vectors(queries: Sequence[str], encode: Encode) -> tuple[Any, Ints]:
    """Return the token vectors of all queries end to end (t, dim), and where each begins (n + 1,)."""
    import torch

    parts: list[Any] = [None] * len(queries)
    for batch, tokens, kept, _ in encode(list(queries), "query"):
        for i, row, keep in zip(batch, tokens, kept):
            parts[i] = row[keep]
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return torch.cat([part.to(parts[0].device) for part in parts]), starts  # batches came from several devices


def _facing(batch: Ints, bounds: Ints, query_of: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Group the passages of a batch that face the same queries: yield (rows of the batch, positions of queries)."""
    groups: dict[bytes, list[int]] = {}
    for row, passage in enumerate(batch):
        groups.setdefault(query_of[bounds[passage]:bounds[passage + 1]].tobytes(), []).append(row)
    for key, rows in groups.items():
        yield np.array(rows, np.int64), np.frombuffer(key, query_of.dtype)


def best_products(query: Any, passages: Any, kept: Any, products: Products) -> Floats:
    """Return, for each query token (t,) and passage (b,), its best inner product: shape (t, b).

    ``passages`` is (b, length, dim) and ``kept`` (b, length). Raises MemlabError if not even one query token fits.
    """
    import torch

    b, length, dim = passages.shape
    dtype = torch.float16 if products == "fp16" else torch.float32
    query, flat = query.to(dtype), passages.reshape(b * length, dim).to(dtype)
    mask = torch.where(kept, 0.0, -torch.inf).to(dtype)

    def best_of(rows: Any) -> Any:
        return ((rows @ flat.T).view(-1, b, length) + mask).amax(dim=2)

    best: list[Any] = []
    device, start = str(passages.device), 0
    with torch.inference_mode():
        while start < len(query):
            cells = CELLS if device == "cpu" else GPU_CELLS
            step = max(1, min(cells, _room.get(device, cells)) // (b * length))
            rows = query[start:start + step]
            part = attempt(partial(best_of, rows))
            if part is not None:
                best.append(part)
                start += step
            elif len(rows) > 1:
                _room[device] = len(rows) // 2 * b * length
            else:
                raise MemlabError(f"{b} passages of {length} tokens do not fit into the memory of {device}",
                                  fix="a smaller cross_encoder.embedder.token_budget")
        return torch.cat(best).cpu().numpy()
