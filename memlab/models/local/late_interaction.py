"""Late interaction (MaxSim): a passage is scored by its best matching token for each token of the query.

    score(q, p) = mean over tokens i of q of  max over tokens j of p of  <q_i, p_j>

Khattab & Zaharia, ColBERT (SIGIR 2020), with the mean in place of their sum: the order within a query is the same,
and scores of queries of different lengths become comparable (unit vectors: between -1 and 1). Any encoder will do;
ColBERT models are trained for it. Sentence-transformers (6 and later) reads the files that PyLate and Stanford's
ColBERT write, with their settings for marker tokens, query expansion and skipped tokens. PyLate itself pins older
versions of sentence-transformers and transformers than memlab needs, so it is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from memlab.models.local.base import LocalModel, is_colbert, projected_width
from memlab.models.local.batching import Block, attempt, by_characters, run_batches
from memlab.models.local.embedder import SentenceEmbedder
from memlab.models.protocols import CHARACTERS, Floats, Ints, Role
from memlab.pipeline.stage import stage
from memlab.support.errors import MemlabError

Products = Literal["fp32", "fp16"]
"""The number format of inner products. Half the bits are several times as fast on a GPU. fp16 moves MiniLM's scores by
1.1e-4 at most (60 questions and 300 turns of LoCoMo, on a CPU), less than an encoder in fp16 does. bf16 keeps three
bits fewer, and unit vectors do not need its range. TF32 would be a switch of the whole process, also for the rotary
position embeddings of an encoder that runs at the same time, which need all bits."""

Encode = Callable[[list[str], Role], Iterator[Block]]
"""Texts to blocks of unit vectors, each on the device that computed it."""

CELLS, GPU_CELLS = 1 << 24, 1 << 27
"""Token products in memory at a time (64 MB in fp32; 512 MB on a GPU, where small steps would leave it idle)."""


@dataclass
class Room:
    """Token products in memory at a time: fewer once a device ran out of memory."""

    cells: int


@cache
def room_of(device: str) -> Room:
    """Return the room on a device, as far as it is known in this process."""
    return Room(CELLS if device == "cpu" else GPU_CELLS)


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
        for rows, asking in _group_by_queries(batch, bounds, query_of[order]):
            index = np.concatenate([np.arange(starts[q], starts[q + 1]) for q in asking])
            asked = vectors[torch.from_numpy(index)].to(tokens.device)
            best = best_products(asked, tokens[rows], kept[rows], products)
            where = np.stack([order[bounds[p]:bounds[p + 1]] for p in batch[rows]], axis=1)
            yield where, best.astype(np.float32), np.concatenate([[0], np.cumsum(np.diff(starts)[asking])])


def query_vectors(queries: Sequence[str], encode: Encode) -> tuple[Any, Ints]:
    """Return the token vectors of all queries end to end (t, dim), and where each begins (n + 1,)."""
    import torch

    parts: list[Any] = [None] * len(queries)
    for batch, tokens, kept, _ in encode(list(queries), "query"):
        for i, row, keep in zip(batch, tokens, kept):
            parts[i] = row[keep]
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return torch.cat([part.to(parts[0].device) for part in parts]), starts  # batches came from several devices


def _group_by_queries(batch: Ints, bounds: Ints, query_of: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Group the passages of a batch that face the same queries: yield (rows of the batch, positions of queries)."""
    groups: dict[bytes, list[int]] = {}
    for row, passage in enumerate(batch):
        groups.setdefault(query_of[bounds[passage]:bounds[passage + 1]].tobytes(), []).append(row)
    for key, rows in groups.items():
        yield np.array(rows, np.int64), np.frombuffer(key, query_of.dtype)


def pad_tokens(rows: Sequence[Any], device: Any) -> tuple[Any, Any]:
    """Return the token vectors of texts as (b, length, dim) on a device, and which of them are real, (b, length)."""
    import torch

    lengths = torch.tensor([len(row) for row in rows], device=device)
    padded = torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True).to(device)
    return padded, torch.arange(padded.shape[1], device=device) < lengths[:, None]


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
    room, start = room_of(str(passages.device)), 0
    with torch.inference_mode():
        while start < len(query):
            step = max(1, room.cells // (b * length))
            rows = query[start:start + step]
            part = attempt(partial(best_of, rows))
            if part is not None:
                best.append(part)
                start += step
            elif len(rows) > 1:
                room.cells = len(rows) // 2 * b * length
            else:
                raise MemlabError(f"{b} passages of {length} tokens do not fit into the memory of {passages.device}",
                                  fix="a smaller cross_encoder.embedder.token_budget")
        return torch.cat(best).cpu().numpy()


@stage
class ColbertEncoder(LocalModel):
    """A ColBERT model, for ``LateInteraction(embedder=ColbertEncoder(path=...))``, loaded at the first call.

    The model itself defines lengths, prefixes, expansion of queries and skipped tokens.
    """

    name: str = "colbert"

    path_option: ClassVar = "cross_encoder.embedder.path"

    def identity(self) -> dict[str, Any]:
        """Return all that can change a token vector."""
        return self._identity("ColbertEncoder")

    def token_width(self) -> int | None:
        """Return the numbers of a token's vector; None if the model's files do not say."""
        return projected_width(self._folder())

    def _folder(self) -> Path:
        folder = super()._folder()
        if not is_colbert(folder):  # sentence-transformers would add a projection with random weights
            raise MemlabError("is no ColBERT model, as its files say", where=f"{self.path_option}={self.path}",
                              fix="for another encoder's token vectors embedder=minilm embedder.path=FOLDER")
        return folder

    def token_vectors(self, texts: Sequence[str], role: Role) -> Iterator[Block]:
        """Yield blocks of one unit vector per token, with the ids of ``word_ids``."""
        import torch

        def work(model: Any, batch: list[str]) -> tuple[Any, Any, Ints]:
            encode = model.encode_query if role == "query" else model.encode_document
            rows = encode(batch, batch_size=len(batch), show_progress_bar=False, output_value=None)
            masks = [row["attention_mask"].bool() for row in rows]
            vectors = [row["token_embeddings"][mask].float() for row, mask in zip(rows, masks)]
            padded, kept = pad_tokens(vectors, vectors[0].device)
            words = word_ids(model.tokenizer, model.prompts.get(role) or "", [row["input_ids"] for row in rows])
            ids = np.full(kept.shape, model.tokenizer.pad_token_id, np.int64)
            ids[kept.cpu().numpy()] = np.concatenate([row[mask.cpu().numpy()] for row, mask in zip(words, masks)])
            return torch.nn.functional.normalize(padded, dim=2), kept, ids

        models = self._load("MultiVectorEncoder")
        budget = CHARACTERS * self._budget()
        for batch, block in run_batches([texts], by_characters, budget, models, work, models.room):
            yield batch, *block


@stage
class ColbertEmbedder(ColbertEncoder):
    """A ColBERT model in the place of the embedder, for late-interaction search; it has no single vector of a text."""

    path_option: ClassVar = "embedder.path"


def word_ids(tokenizer: Any, prefix: str, rows: Sequence[Any]) -> list[Ints]:
    """Return the ids of texts that were tokenised behind a prefix, with that of padding for tokens outside the text.

    These are the tokens around a text, the prefix, and what a query is filled up with. Every text has some, so that
    with weights of rare words they count next to nothing.
    """
    outside = list(set(tokenizer.all_special_ids) - {tokenizer.unk_token_id})
    nothing, alone = (tokenizer(text)["input_ids"][::-1] for text in ("", prefix.strip()))
    closing = next((i for i, (one, other) in enumerate(zip(nothing, alone)) if one != other), len(nothing))
    found = []
    for row in rows:
        ids = np.array(row.cpu(), np.int64)
        ids[np.isin(ids, outside)] = tokenizer.pad_token_id
        ids[:len(alone) - closing] = tokenizer.pad_token_id
        found.append(ids)
    return found


@stage
class LateInteraction:
    """MaxSim over the token vectors of an encoder; every passage is encoded once per call and scored at once."""

    embedder: SentenceEmbedder | ColbertEncoder
    query_tokens: Annotated[int, Field(ge=1)] = 48  # of a longer question the first 48 tokens count

    version: ClassVar[int] = 1
    encodes_passages: ClassVar[bool] = True  # once each, whatever the number of pairs

    def identity(self) -> dict[str, Any]:
        """Return all that can change a score."""
        halved = {} if self._products() == "fp32" else {"products": self._products()}
        return {"is": "LateInteraction", "version": self.version, "embedder": self.embedder.identity(),
                "query_tokens": self.query_tokens, **halved}

    def on_gpu(self) -> bool:
        """Return whether the encoder runs on a GPU."""
        return self.embedder.on_gpu()

    def matches_on(self) -> tuple[str, Products]:
        """Return the device that stored token vectors are matched on, and the number format of their products."""
        return (self.embedder.first_device(), self._products()) if self.on_gpu() else ("cpu", "fp32")

    def token_width(self) -> int | None:
        """Return the numbers of a token's vector; None if the encoder's own configuration does not say."""
        return self.embedder.token_width()

    def origin(self) -> dict[str, Any]:
        """Return where the encoder came from."""
        return self.embedder.origin()

    def score(self, queries: Sequence[str], passages: Sequence[str], pairs: Ints) -> Iterator[tuple[Ints, Floats]]:
        """Score pairs (n, 2) of positions in queries and passages; yield (positions in pairs (b,), scores (b,))."""
        return mean_matches(queries, passages, pairs, self.embedder.token_vectors, self._products())

    def token_identity(self, role: Role) -> dict[str, Any]:
        """Return all that can change a token vector of a text in this role."""
        del role
        return {"is": "LateInteraction", "version": self.version, "embedder": self.embedder.identity()}

    def token_vectors(self, texts: Sequence[str], role: Role) -> Iterator[tuple[Ints, list[Ints], list[Floats]]]:
        """Yield (positions (b,), per text the ids (tokens,) of the tokens that count, and their fp32 vectors)."""
        for positions, vectors, kept, ids in self.embedder.token_vectors(texts, role):
            assert ids is not None, "every encoder of this class names its tokens"
            counted, flat = kept.cpu().numpy(), vectors[kept].float().cpu().numpy()
            ends = np.cumsum(counted.sum(axis=1))[:-1]
            yield np.asarray(positions, np.int64), np.split(ids[counted], ends), np.split(flat, ends)

    def token_limit(self) -> int | None:
        """Return the number of tokens that the encoder reads of a text; None if its model alone knows."""
        return self.embedder.token_limit() if isinstance(self.embedder, SentenceEmbedder) else None

    def _products(self) -> Products:
        return choose_products(self.on_gpu(), self.embedder.identity()["dtype"])
