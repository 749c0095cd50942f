"""Late interaction: a passage is scored by its best matching token for each token of the query (MaxSim).

    score(q, p) = mean over tokens i of q of  max over tokens j of p of  <q_i, p_j>

Khattab & Zaharia, ColBERT (SIGIR 2020), with the mean in place of their sum: the order within a query is the same,
and scores of queries of different lengths become comparable (unit vectors: between -1 and 1). It needs an encoder
only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from memlab.errors import MemlabError
from memlab.models.local.batching import attempt
from memlab.models.local.colbert import ColbertEncoder
from memlab.models.local.embedder import SentenceEmbedder
from memlab.models.protocols import Floats, Ints, Role
from memlab.stage import stage

_CELLS, _GPU_CELLS = 1 << 24, 1 << 27
"""Token products in memory at a time (64 MB in fp32; 512 MB on a GPU, where small steps would leave it idle)."""

_room: dict[str, int] = {}
"""Token products of each device that ran out of memory."""


@stage
class LateInteraction:
    """MaxSim over the token vectors of an encoder; every passage is encoded once per call and scored at once."""

    embedder: SentenceEmbedder | ColbertEncoder
    special: bool = False
    query_punctuation: bool = False  # a question mark carries no meaning and is rare in turns
    passage_punctuation: bool = False
    query_tokens: Annotated[int, Field(ge=1)] = 48  # of a longer question the first 48 tokens count

    version: ClassVar[int] = 1

    def identity(self) -> dict[str, Any]:
        """Return all that can change a score."""
        return {"is": "LateInteraction", "version": self.version, "embedder": self.embedder.identity(),
                "special": self.special, "query_punctuation": self.query_punctuation,
                "passage_punctuation": self.passage_punctuation, "query_tokens": self.query_tokens}

    def origin(self) -> dict[str, Any]:
        """Return where the encoder came from."""
        return self.embedder.origin()

    def score(self, queries: Sequence[str], passages: Sequence[str], pairs: Ints) -> Iterator[tuple[Ints, Floats]]:
        """Score pairs (n, 2) of positions in queries and passages; yield (positions in pairs (b,), scores (b,))."""
        for where, best, starts in self._best(queries, passages, pairs):
            lengths = np.diff(starts)[:, None]
            means = (np.add.reduceat(best, starts[:-1], axis=0) / lengths).astype(np.float32)  # (queries, passages)
            yield where.reshape(-1), means.reshape(-1)

    def match(self, queries: Sequence[str], passages: Sequence[str], pairs: Ints) -> Iterator[tuple[Ints, Floats]]:
        """Yield (positions in pairs (b,), the best inner product of each query token (b, query_tokens)).

        Rows are filled with 0 beyond a query's last token; of a longer query the first ``query_tokens`` count.
        """
        for where, best, starts in self._best(queries, passages, pairs):
            rows = np.zeros((*where.shape, self.query_tokens), np.float32)
            for i, (start, end) in enumerate(zip(starts, starts[1:])):
                n = min(end - start, self.query_tokens)
                rows[i, :, :n] = best[start:start + n].T
            yield where.reshape(-1), rows.reshape(-1, self.query_tokens)

    def token_ids(self, texts: Sequence[str], role: Role) -> list[Ints]:
        """Return, for each text, the vocabulary ids of the tokens that count, in order."""
        return self.embedder.token_ids(texts, role, special=self.special, punctuation=self._punctuation(role))

    def _punctuation(self, role: Role) -> bool:
        return self.query_punctuation if role == "query" else self.passage_punctuation

    def _best(self, queries: Sequence[str], passages: Sequence[str],
              pairs: Ints) -> Iterator[tuple[Ints, Floats, Ints]]:
        """Yield (positions in pairs (q, p), best products of their query tokens (t, p), where queries begin (q + 1,)).

        Every passage is encoded once, and all its pairs are scored while its token vectors are in memory.
        """
        import torch

        if not len(pairs):
            return
        used_queries, query_of = np.unique(pairs[:, 0], return_inverse=True)
        used, passage_of = np.unique(pairs[:, 1], return_inverse=True)
        vectors, starts = self._query_vectors([queries[i] for i in used_queries])
        order = np.lexsort((query_of, passage_of))  # pairs by passage, then by query
        bounds = np.searchsorted(passage_of[order], np.arange(len(used) + 1))
        blocks = self.embedder.token_vectors([passages[i] for i in used], "document", special=self.special,
                                             punctuation=self.passage_punctuation)
        for batch, tokens, kept in blocks:
            for rows, facing in _facing(batch, bounds, query_of[order]):
                index = np.concatenate([np.arange(starts[q], starts[q + 1]) for q in facing])
                best = _best_products(vectors[torch.from_numpy(index)].to(tokens.device), tokens[rows], kept[rows])
                where = np.stack([order[bounds[p]:bounds[p + 1]] for p in batch[rows]], axis=1)
                yield where, best.astype(np.float32), np.concatenate([[0], np.cumsum(np.diff(starts)[facing])])

    def _query_vectors(self, queries: Sequence[str]) -> tuple[Any, Ints]:
        """Return the token vectors of all queries end to end (t, dim), and where each begins (n + 1,)."""
        import torch

        parts: list[Any] = [None] * len(queries)
        blocks = self.embedder.token_vectors(queries, "query", special=self.special,
                                             punctuation=self.query_punctuation)
        for batch, tokens, kept in blocks:
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


def _best_products(query: Any, passages: Any, kept: Any) -> Floats:
    """Return, for each query token (t,) and passage (b,), its best inner product: shape (t, b).

    ``passages`` is (b, length, dim) and ``kept`` (b, length).
    """
    import torch

    b, length, dim = passages.shape
    flat = passages.reshape(b * length, dim)
    mask = torch.where(kept, 0.0, -torch.inf).to(flat.dtype)

    def best_of(rows: Any) -> Any:
        return ((rows @ flat.T).view(-1, b, length) + mask).amax(dim=2)

    best: list[Any] = []
    device, start = str(passages.device), 0
    with torch.inference_mode():
        while start < len(query):
            cells = _CELLS if device == "cpu" else _GPU_CELLS
            step = max(1, min(cells, _room.get(device, cells)) // (b * length))
            rows = query[start:start + step]
            products = attempt(partial(best_of, rows))
            if products is not None:
                best.append(products)
                start += step
            elif len(rows) > 1:
                _room[device] = len(rows) // 2 * b * length
            else:
                raise MemlabError(f"{b} passages of {length} tokens do not fit into the memory of {device}",
                                  fix="a smaller cross_encoder.embedder.token_budget")
        return torch.cat(best).cpu().numpy()
