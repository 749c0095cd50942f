"""Exact MaxSim over stored token vectors: matrix products in pieces, and the maximum over the tokens of each text.

Khattab & Zaharia, ColBERT (SIGIR 2020). No model is called; ``placed_tokens`` says where products are computed. On two
cores and 147,000 tokens of 384 numbers the product with a question of ten tokens takes 38 ms of processor time; the
maxima take 2.4 ms with ``torch.segment_reduce``, 2.9 with ``np.maximum.reduceat``, 13 with ``scatter_reduce``; with
1,000 question tokens the first is twice as fast as the second.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from memlab.models.local.backend import to_device
from memlab.models.local.batching import attempt
from memlab.models.local.late_interaction import GPU_CELLS
from memlab.models.protocols import Floats, Ints
from memlab.stages.search.token_pools import PlacedTokens
from memlab.store import token_vectors
from memlab.store.token_vectors import TokenVectors
from memlab.support.terminal import log_once

if TYPE_CHECKING:
    import torch

CELLS = 1 << 24
"""Products in memory at a time: 64 MB; on a GPU ``GPU_CELLS``."""

TOKENS, GPU_TOKENS = 1 << 16, 1 << 18
"""Token vectors whose maxima are taken at a time. A GPU also widens so many at once, to 400 MB of 384 numbers in fp32;
a CPU a few of them (``placed_tokens.CACHED``)."""

COLUMNS, STEP = 16, 8
"""Columns of a product: at least so many, and a multiple of the step; query tokens are filled up with zeros. MKL takes
.50 ms for 2,048 vectors of 384 numbers times 14 columns, .23 for 16, .62 for 23, .36 for 24, .68 for 31, .32 for 32."""

FEWEST = 1 << 10
"""Token vectors at a time below which a GPU without memory leaves the products to the CPU."""

_parts: dict[str, int] = {}
"""How often the pieces of each device that ran out of memory are divided."""


def cells(texts: PlacedTokens) -> int:
    """Return the number of products that the device of the texts holds at a time."""
    return CELLS if texts.device == "cpu" else GPU_CELLS


def best_matches(query: Floats, texts: TokenVectors | PlacedTokens) -> Floats:
    """Return the best inner product of each text with each query token (t, dim): shape (n, t).

    Only these come back from a device. If its memory runs out, it gets pieces of half the size, and remembers that.
    """
    placed = texts if isinstance(texts, PlacedTokens) else PlacedTokens(texts)
    device, tokens = placed.device, cells(placed) // max(len(query), 1)
    if device == "cpu":
        return _best(query, placed, max(1, min(TOKENS, tokens)))
    tokens = min(GPU_TOKENS, tokens)
    while (some := max(1, tokens // _parts.get(device, 1))) >= min(FEWEST, tokens):
        best = attempt(partial(_best, query, placed, some))
        if best is not None:
            return best
        _parts[device] = 2 * _parts.get(device, 1)
    log_once("late interaction runs on the CPU: the GPU ran out of memory")
    return best_matches(query, placed.in_main_memory())


def _best(query: Floats, texts: PlacedTokens, tokens: int) -> Floats:
    """Return the best products, computed on the device of the texts with so many token vectors at a time."""
    import torch

    dtype = torch.float16 if texts.products == "fp16" else torch.float32
    best = torch.empty((len(texts), _width(len(query))), device=texts.device)
    asked: dict[bool, torch.Tensor] = {}
    with torch.inference_mode():
        for rows, starts, piece, at in texts.pieces(tokens):
            rotated = piece.bits > 0
            if rotated not in asked:
                asked[rotated] = to_device(columns(query, rotated), texts.device).to(dtype)
            products = piece.products(at, asked[rotated])
            lengths = to_device(np.diff(starts), texts.device)
            highest = torch.segment_reduce(products, "max", lengths=lengths, unsafe=True)
            best.index_copy_(0, to_device(rows, texts.device), highest.float())
    matches: Floats = best[:, :len(query)].cpu().numpy()
    return matches


def columns(query: Floats, rotated: bool = False) -> torch.Tensor:
    """Return query tokens (t, dim) as columns, filled up with zeros behind the first t (``COLUMNS``).

    They are a view of rows: copied columns take 1.3 to 1.8 times as long on a CPU. rotated: whether they are rotated,
    as quantised vectors are.
    """
    import torch

    rows = np.zeros((_width(len(query)), query.shape[1]), np.float32)
    rows[:len(query)] = query
    upright = torch.from_numpy(rows).T
    return torch.from_numpy(token_vectors.rotation(query.shape[1])).T @ upright if rotated else upright


def _width(tokens: int) -> int:
    """Return the number of columns of so many query tokens."""
    return max(COLUMNS, -(-tokens // STEP) * STEP)


def weighted_sums(weight: Floats, matches: Floats) -> Floats:
    """Return the sums (n,) over query tokens of their weights (t,) times their matches (t, n).

    By PyTorch: threads of NumPy's BLAS wait for more work in a loop, and doubled the time of the next product here.
    """
    import torch

    sums: Floats = (torch.from_numpy(weight) @ torch.from_numpy(matches)).numpy()
    return sums


class DocumentFrequencies:
    """Document frequencies, among the first v memories, of the tokens of some questions.

    Args:
        texts: Token vectors of the distinct texts of the memories.
        text_of: (n,) the text of each memory, in the order in which questions see them.
        asked: Token ids of all questions.
    """

    def __init__(self, texts: TokenVectors, text_of: Ints, asked: Ints) -> None:
        ids, text = texts.ids()
        kept = np.isin(ids, asked)
        pairs = np.unique(np.stack([text[kept], ids[kept]], axis=1), axis=0)  # (text, token), each once
        order = np.argsort(text_of, kind="stable")
        bounds = np.searchsorted(text_of[order], np.arange(len(texts) + 1))
        counts = np.diff(bounds)[pairs[:, 0]]
        begins = np.repeat(bounds[pairs[:, 0]] - (np.cumsum(counts) - counts), counts)
        memories = order[np.arange(counts.sum()) + begins]
        self._stride = len(text_of) + 1
        self._postings = np.sort(np.repeat(pairs[:, 1], counts) * self._stride + memories)

    def count(self, tokens: Ints, visible: int) -> Ints:
        """Return the document frequency of each token (t,) among the first ``visible`` memories, (t,)."""
        first = tokens * self._stride
        return np.searchsorted(self._postings, first + visible) - np.searchsorted(self._postings, first)
