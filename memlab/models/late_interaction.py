"""Late interaction: a passage's score is how well its tokens answer each token of the query (MaxSim).

    score(q, p) = mean over tokens i of q of  max over tokens j of p of  <q_i, p_j>

Khattab & Zaharia, ColBERT (SIGIR 2020), with the mean in place of their sum: within a query the order is the same,
and scores of queries of different lengths become comparable (unit vectors: between -1 and 1). It needs no weights
beyond an encoder's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from memlab.models.embedder import SentenceEmbedder
from memlab.models.protocols import Floats, Ints
from memlab.stage import stage

_CELLS = 1 << 24
"""Token products held at a time (64 MB in fp32)."""


@stage
class LateInteraction:
    """MaxSim over the token vectors of an encoder; every passage is encoded once a call and scored at once."""

    embedder: SentenceEmbedder
    special: bool = False
    query_punctuation: bool = True
    passage_punctuation: bool = False

    version: ClassVar[int] = 1

    def identity(self) -> dict[str, Any]:
        """All that can change a score."""
        return {"is": "LateInteraction", "version": self.version, "embedder": self.embedder.identity(),
                "special": self.special, "query_punctuation": self.query_punctuation,
                "passage_punctuation": self.passage_punctuation}

    def score(self, queries: Sequence[str], passages: Sequence[str], pairs: Ints) -> Iterator[tuple[Ints, Floats]]:
        """Score pairs (n, 2) of positions in queries and passages; yield (positions in pairs (b,), scores (b,))."""
        import torch

        asked, query_of = np.unique(pairs[:, 0], return_inverse=True)
        used, passage_of = np.unique(pairs[:, 1], return_inverse=True)
        vectors, starts = self._query_tokens([queries[i] for i in asked])
        order = np.lexsort((query_of, passage_of))  # pairs by passage, then by query
        bounds = np.searchsorted(passage_of[order], np.arange(len(used) + 1))
        blocks = self.embedder.token_vectors([passages[i] for i in used], "document", special=self.special,
                                             punctuation=self.passage_punctuation)
        for batch, tokens, kept in blocks:
            for rows, facing in _facing(batch, bounds, query_of[order]):
                index = np.concatenate([np.arange(starts[q], starts[q + 1]) for q in facing])
                best = _best_products(vectors[torch.from_numpy(index)].to(tokens.device), tokens[rows], kept[rows])
                sums = np.add.reduceat(best, np.concatenate([[0], np.cumsum(np.diff(starts)[facing])[:-1]]), axis=0)
                means = sums / np.diff(starts)[facing][:, None]  # (queries, rows)
                where = np.stack([order[bounds[p]:bounds[p + 1]] for p in batch[rows]], axis=1)
                yield where.reshape(-1), means.reshape(-1).astype(np.float32)

    def _query_tokens(self, queries: Sequence[str]) -> tuple[Any, Ints]:
        """Return the token vectors of all queries end to end (t, dim), and where each begins (n + 1,)."""
        import torch

        parts: list[Any] = [None] * len(queries)
        blocks = self.embedder.token_vectors(queries, "query", special=self.special,
                                             punctuation=self.query_punctuation)
        for batch, tokens, kept in blocks:
            for i, row, keep in zip(batch, tokens, kept):
                parts[i] = row[keep]
        starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        return torch.cat(parts), starts


def _facing(batch: Ints, bounds: Ints, query_of: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Group the passages of a batch that face the same queries: yield (rows of the batch, positions of queries)."""
    groups: dict[bytes, list[int]] = {}
    for row, passage in enumerate(batch):
        groups.setdefault(query_of[bounds[passage]:bounds[passage + 1]].tobytes(), []).append(row)
    for key, rows in groups.items():
        yield np.array(rows, np.int64), np.frombuffer(key, query_of.dtype)


def _best_products(query: Any, passages: Any, kept: Any) -> Floats:
    """Return, for each query token (t,) and passage (b,), its best inner product: shape (t, b).

    ``passages`` is (b, length, dim) and ``kept`` (b, length).
    """
    import torch

    b, length, dim = passages.shape
    flat = passages.reshape(b * length, dim)
    shut = torch.where(kept, 0.0, -torch.inf).to(flat.dtype)
    best = []
    step = max(1, _CELLS // (b * length))
    with torch.inference_mode():
        for start in range(0, len(query), step):
            products = (query[start:start + step] @ flat.T).view(-1, b, length)  # (step, b, length)
            best.append((products + shut).amax(dim=2))
        return torch.cat(best).cpu().numpy()
