"""Speed of a device: its own rates, and those of encoding, reranking, late interaction and exact search on it.

Every share is one of useful work: operations on real tokens, without padding, over the rate of a large matrix product;
bytes that must be read once, over the rate of a large copy.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from memlab.models.flagembedding import flag_embedding
from memlab.models.local.batching import tokenise
from memlab.models.local.cross_encoder import CrossEncoderScorer
from memlab.models.local.embedder import SentenceEmbedder
from memlab.models.protocols import Floats, Ints
from memlab.stages.search.exact import ExactOnDevice
from memlab.stages.search.maxsim import best_matches
from memlab.stages.search.token_pools import place
from memlab.store.token_vectors import TokenVectors, make_block
from memlab.support.errors import MemlabError

from . import random_models
from .random_models import LARGE, TINY, Shape
from .rows import Row, rate

SLOWER = 0.9
"""A rate below this share of another library's is off."""

BESIDE_BATCHES = (32, 256)
"""Batch sizes that sentence-transformers is given, its default and a large one; the faster one counts."""

FLAG_BATCH, FLAG_SHARE = 256, 8
"""The batch size of FlagEmbedding, its default, and the part of the pairs that it gets: one in so many."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured.

    Attributes:
        shape: Of the encoder and the reranker.
        turns, sessions: Texts to encode: their number, and the fewest and most tokens of each.
        pairs: Number of pairs of a question of 12 tokens and a turn.
        tokens: Token vectors that are matched.
        vectors, queries: Of the exact search.
        square: Rows and columns of the matrix product.
        copied: Bytes of the copy.
    """

    shape: Shape
    turns: tuple[int, tuple[int, int]]
    sessions: tuple[int, tuple[int, int]]
    pairs: int
    tokens: int
    vectors: int
    queries: int
    square: int
    copied: int


REAL = Sizes(LARGE, (16_384, (5, 200)), (512, (500, 4_000)), 16_384, 1_000_000, 1_000_000, 1_024, 8_192, 1 << 32)
SMALL = Sizes(TINY, (256, (5, 60)), (8, (100, 250)), 128, 20_000, 20_000, 64, 512, 1 << 24)


@dataclass(frozen=True)
class Rates:
    """Peak rates of the device, as measured.

    Attributes:
        half: FLOP/s of a matrix product in fp16; on a CPU in fp32.
        single: FLOP/s in fp32.
        copied: Bytes/s read and written.
        sent: Bytes/s sent to the device.
    """

    half: float
    single: float
    copied: float
    sent: float

    def row(self) -> Row:
        """Return the rates as a line of the table."""
        both = self.half != self.single
        products = rate(self.half, "FLOP/s") + f" in fp16, {rate(self.single, 'FLOP/s')} in fp32" * both
        return Row("rates", "matrix product, copy, sending",
                   f"{products}, {rate(self.copied, 'B/s')}, {rate(self.sent, 'B/s')}",
                   numbers={"flop_per_s": self.half, "fp32_flop_per_s": self.single,
                            "copied_bytes_per_s": self.copied, "sent_bytes_per_s": self.sent})


def seconds(call: Callable[[], Any], device: str, repeats: int = 3, *, warm: bool = True) -> float:
    """Return the median time of a call, which is made once before; work on the device is waited for."""
    if warm:
        call()
    times = []
    for _ in range(repeats):
        synchronise(device)
        begin = time.perf_counter()
        call()
        synchronise(device)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def synchronise(device: str) -> None:
    """Wait for the work that a GPU was given."""
    import torch

    if device != "cpu":
        torch.cuda.synchronize(device)


def device_rates(device: str, sizes: Sizes) -> Rates:
    """Measure the device: square products in fp32 and in half precision, a copy, and a copy from main memory."""
    import torch

    one, two = (torch.randn(sizes.square, sizes.square, device=device) for _ in range(2))
    single = seconds(lambda: one @ two, device, 5)
    half = single
    if device != "cpu":
        one, two = one.half(), two.half()
        half = seconds(lambda: one @ two, device, 10)
    source = torch.randint(0, 100, (sizes.copied,), device=device, dtype=torch.uint8)
    target = torch.empty_like(source)
    copy = seconds(lambda: target.copy_(source), device, 10)
    here = torch.empty(sizes.copied // 4, dtype=torch.uint8, pin_memory=device != "cpu")
    send = seconds(lambda: target[:len(here)].copy_(here), device, 5)
    return Rates(2 * sizes.square**3 / half, 2 * sizes.square**3 / single, 2 * sizes.copied / copy, len(here) / send)


@dataclass(frozen=True)
class Work:
    """What memlab needs for some texts or pairs.

    Attributes:
        number: Texts or pairs.
        tokens: (n,) tokens of each.
        seconds: Time for all of them.
        working_gb: The most memory of the GPU that tensors took beside the model; 0 on a CPU.
    """

    number: int
    tokens: Ints
    seconds: float
    working_gb: float

    def share(self, shape: Shape, flops: float) -> float:
        """Return the share of a rate in FLOP/s that work on real tokens took."""
        return shape.flops(self.tokens) / self.seconds / flops


def encode(folder: Path, device: str, texts: Sequence[str]) -> Work:
    """Measure memlab's encoder."""
    model = SentenceEmbedder(path=str(folder), name="random weights", device=device)
    tokens = tokenise(random_models.tokenizer(), texts, model.token_limit()).lengths
    taken, working = time_call(lambda: list(model.encode(texts, "document")), device)
    return Work(len(texts), tokens, taken, working)


def rerank(folder: Path, device: str, questions: Sequence[str], turns: Sequence[str]) -> Work:
    """Measure memlab's cross-encoder on all pairs of some questions and turns."""
    pairs = np.stack(np.divmod(np.arange(len(questions) * len(turns)), len(turns)), axis=1)
    model = CrossEncoderScorer(path=str(folder), name="random weights", device=device)
    lengths = [tokenise(random_models.tokenizer(), some, 10_000, special=False).lengths for some in (questions, turns)]
    taken, working = time_call(lambda: list(model.score(questions, turns, pairs)), device)
    return Work(len(pairs), lengths[0][pairs[:, 0]] + lengths[1][pairs[:, 1]] + 3, taken, working)


def time_encoding(folder: Path, device: str, sizes: Sizes, rates: Rates, whole_sessions: bool) -> Row:
    """Compare memlab's encoder with sentence-transformers on the same texts."""
    from sentence_transformers import SentenceTransformer

    texts = encoder_texts(sizes, whole_sessions)
    work = encode(folder, device, texts)
    beside = SentenceTransformer(str(folder), device=device, model_kwargs={"dtype": _dtype(device)})
    other = _fastest(lambda batch: beside.encode(texts, batch_size=batch, normalize_embeddings=True,
                                                 show_progress_bar=False), device)
    name = f"encoding, {'sessions' if whole_sessions else 'turns'} of {work.tokens.mean():.0f} tokens"
    return _work_row(sizes, name, work, "texts/s", rates, other, "embedder.token_budget=131072")


def time_reranking(folder: Path, device: str, sizes: Sizes, rates: Rates) -> Row:
    """Compare memlab's cross-encoder with sentence-transformers on the same pairs."""
    from sentence_transformers import CrossEncoder

    questions, turns = reranker_texts(sizes)
    work = rerank(folder, device, questions, turns)
    beside = CrossEncoder(str(folder), device=device, model_kwargs={"dtype": _dtype(device)})
    both = [(question, turn) for question in questions for turn in turns]
    other = _fastest(lambda batch: beside.predict(both, batch_size=batch, show_progress_bar=False), device)
    name = f"reranking, pairs of {work.tokens.mean():.0f} tokens"
    return _work_row(sizes, name, work, "pairs/s", rates, other, "cross_encoder.token_budget=131072")


def encoder_texts(sizes: Sizes, whole_sessions: bool) -> list[str]:
    """Return the texts that encoders are measured on."""
    number, lengths = sizes.sessions if whole_sessions else sizes.turns
    return random_models.texts(number, lengths, seed=2)


def reranker_texts(sizes: Sizes) -> tuple[list[str], list[str]]:
    """Return the questions and turns that rerankers are measured on."""
    return random_models.texts(16, (12, 12), seed=3), random_models.texts(sizes.pairs // 16, (5, 200), seed=4)


def late_interaction(device: str, sizes: Sizes, rates: Rates) -> Row:
    """Measure products of token vectors per second in stored texts, and those of sentence-transformers' MaxSim."""
    import torch
    from sentence_transformers.util import maxsim

    stored = random_token_vectors(5, sizes.tokens, sizes.shape.hidden, device)
    query = unit(6, 32, sizes.shape.hidden, device)
    placed = place(stored, device, "fp32" if device == "cpu" else "fp16")
    taken, working = time_call(lambda: best_matches(query, placed), device, 10)
    wide = torch.from_numpy(stored.blocks[0].vectors).to(device, _dtype(device))
    documents = list(torch.split(wide, stored.lengths.tolist()))
    asked = torch.from_numpy(query).to(device, _dtype(device))
    other = seconds(lambda: maxsim([asked], documents), device)
    products = float(sizes.tokens * len(query))
    read = sizes.tokens * sizes.shape.hidden * wide.element_size()
    return _speed_row(sizes, f"late interaction, {sizes.tokens:,} token vectors", products / taken, "products/s",
                     (read / taken / rates.copied, "the copy"), products / other, "sentence-transformers' maxsim",
                     "a card with more memory, or search.late.precision=fp16, so that all vectors stay on it",
                     working_gb=working)


def exact_search(device: str, sizes: Sizes, rates: Rates) -> Row:
    """Measure queries per second of exact search, and of sentence-transformers' search on the same device."""
    import torch
    from sentence_transformers.util import semantic_search

    vectors, queries = (unit(i, number, sizes.shape.hidden, device)
                        for i, number in enumerate((sizes.vectors, sizes.queries)))
    searcher = ExactOnDevice(vectors, 1 << 16, device)
    visible = np.full(len(queries), len(vectors))
    taken, working = time_call(lambda: searcher.search(queries, visible, 100), device)
    one = seconds(lambda: searcher.search(queries[:1], visible[:1], 100), device, 10)
    there, asked = (torch.from_numpy(some).to(device) for some in (vectors, queries))
    other = seconds(lambda: semantic_search(asked, there, top_k=100, corpus_chunk_size=1 << 18), device)
    share = 2.0 * vectors.size * len(queries) / taken / rates.single, "the fp32 product"
    return _speed_row(sizes, f"exact search, {len(vectors):,} vectors, {len(queries)} queries", len(queries) / taken,
                     "queries/s", share, len(queries) / other, "sentence-transformers' semantic_search",
                     "report it with the file", working_gb=working, one_query_s=one)


def flag_rate(kind: Literal["encoder", "reranker"], folder: Path, device: str, sizes: Sizes) -> Row:
    """Measure FlagEmbedding on the texts or pairs of the rows above; skipped where it is not installed."""
    name, half = f"FlagEmbedding's {kind}", device != "cpu"
    try:
        package = flag_embedding()
    except MemlabError as error:
        return Row("speed", name, error.what, "skipped", advice=error.fix)
    if kind == "encoder":
        texts = encoder_texts(sizes, whole_sessions=False)
        encoder = package.BGEM3FlagModel(str(folder), use_fp16=half, devices=[device])
        number, taken = len(texts), seconds(
            lambda: encoder.encode(texts, batch_size=FLAG_BATCH, max_length=512), device, 1)
    else:
        questions, turns = reranker_texts(sizes)
        pairs = [(question, turn) for question in questions for turn in turns][::FLAG_SHARE]
        reranker = package.FlagReranker(str(folder), use_fp16=half, devices=[device])
        number, taken = len(pairs), seconds(
            lambda: reranker.compute_score(pairs, batch_size=FLAG_BATCH, max_length=512), device, 1)
    return Row("speed", name, rate(number / taken, "texts/s" if kind == "encoder" else "pairs/s"),
               numbers={"per_s": number / taken})


def time_call(call: Callable[[], Any], device: str, repeats: int = 3) -> tuple[float, float]:
    """Return the median seconds of a call, and the GB of a GPU that its tensors took beside those of before; CPU: 0."""
    import torch

    call()
    if device == "cpu":
        return seconds(call, device, repeats, warm=False), 0.0
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    taken = seconds(call, device, repeats, warm=False)
    return taken, (torch.cuda.max_memory_allocated(device) - before) / 1e9


def unit(seed: int, rows: int, width: int, device: str) -> Floats:
    """Return random unit vectors (rows, width) in fp32, drawn on a device, where that takes no time."""
    import torch

    vectors = torch.randn(rows, width, generator=torch.Generator(device).manual_seed(seed), device=device)
    return torch.nn.functional.normalize(vectors, dim=1).cpu().numpy()  # type: ignore[no-any-return]


def random_token_vectors(seed: int, tokens: int, width: int, device: str) -> TokenVectors:
    """Return so many token vectors in texts of 5 to 59 tokens, in fp16."""
    lengths: Ints = np.random.default_rng(seed).integers(5, 60, tokens // 32)
    lengths = np.append(lengths[np.cumsum(lengths) < tokens - 60], 0)
    lengths[-1] = tokens - lengths.sum()
    vectors = unit(seed, tokens, width, device)
    begins = np.concatenate([[0], np.cumsum(lengths)])
    block = make_block(np.zeros((len(lengths), 2), np.uint64), [np.zeros(n, np.int64) for n in lengths],
                       [vectors[a:b] for a, b in zip(begins, begins[1:])], "fp16")
    return TokenVectors((block,), np.zeros(len(lengths), np.int64), begins[:-1], lengths)


def _speed_row(sizes: Sizes, name: str, speed: float, unit: str, share: tuple[float, str], other: float,
               library: str, advice: str, **numbers: float) -> Row:
    small = sizes is SMALL  # tiny models measure Python alone
    off = not small and not speed >= SLOWER * other
    beside = f"{library}: {rate(other, unit)}, memlab {speed / other:.2f} times that"
    return Row("speed", name, rate(speed, unit), "off" if off else "ok", f"{share[0]:.0%} of {share[1]}",
               beside + " (not judged at small sizes)" * small, advice if off else "",
               {"per_s": speed, "share": share[0], "beside_per_s": other, **numbers})


def _work_row(sizes: Sizes, name: str, work: Work, unit: str, rates: Rates, other: float, advice: str) -> Row:
    """Compare work with sentence-transformers' seconds for it."""
    share = work.share(sizes.shape, rates.half), "the product"
    return _speed_row(sizes, name, work.number / work.seconds, unit, share, work.number / other,
                      "sentence-transformers", f"{advice}, and pip install flash-attn",
                      tokens_per_s=float(work.tokens.sum()) / work.seconds, working_gb=work.working_gb)


def _fastest(call: Callable[[int], Any], device: str) -> float:
    """Return the seconds of a call with the better batch size."""
    return min(seconds(partial(call, batch), device, 1) for batch in BESIDE_BATCHES)


def _dtype(device: str) -> Any:
    import torch

    return torch.float32 if device == "cpu" else torch.float16

