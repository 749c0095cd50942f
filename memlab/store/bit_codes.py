"""Codes of vectors in 2 or 4 bits per number: turned by a fixed rotation, and rounded to a few levels.

After a random rotation the numbers of any vector are nearly normal, so that one table of levels suits all vectors:
nothing is trained, and a code depends on its own vector alone (Zandieh et al., TurboQuant, 2025, arXiv 2504.19874). The
scale makes the inner product of a vector with its own code exact (Gao & Long, RaBitQ, SIGMOD 2024).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memlab.errors import MemlabError
from memlab.models.protocols import Floats

if TYPE_CHECKING:
    import torch

UPPER_LEVELS = {
    2: [0.4528, 1.510],
    4: [0.1284, 0.3881, 0.6568, 0.9424, 1.256, 1.618, 2.069, 2.733],
}
"""Bits -> the levels above 0 with the least squared error for a normal number (Max, 1960, table I)."""


def levels(bits: int) -> Floats:
    """Return all levels, (2**bits,), ascending.

    >>> levels(2).round(2)
    array([-1.51, -0.45,  0.45,  1.51], dtype=float32)
    """
    upper = np.array(UPPER_LEVELS[bits], np.float32)
    return np.concatenate([-upper[::-1], upper])


@lru_cache(maxsize=4)
def rotation(dim: int) -> Floats:
    """Return the rotation (dim, dim) of all vectors of a length: ``vectors @ rotation(dim)`` turns them.

    It is the orthogonal factor of a fixed random matrix, with the signs that make it the same with every library.
    """
    orthogonal, upper = np.linalg.qr(np.random.default_rng(0).standard_normal((dim, dim)))
    turned: Floats = (orthogonal * np.sign(np.diag(upper))).astype(np.float32)
    return turned


def encode(vectors: Floats, bits: int) -> tuple[NDArray[np.uint8], Floats]:
    """Return the codes (t, dim * bits / 8) of vectors (t, dim), and the scale of each (t,).

    Raises MemlabError if the codes of a vector do not fill its last byte.
    """
    count, dim = vectors.shape
    per_byte = 8 // bits
    if dim % per_byte:
        raise MemlabError(f"vectors of {dim} numbers do not fill whole bytes of {bits} bits each",
                          where="search.late.precision", fix="int8")
    turned = vectors @ rotation(dim)
    lengths = np.linalg.norm(turned, axis=1, keepdims=True)
    table = levels(bits)
    numbers = np.searchsorted((table[1:] + table[:-1]) / 2, turned / np.maximum(lengths, 1e-12) * dim**0.5)
    match = (table[numbers] * turned).sum(axis=1)  # the inner product of a vector with its code
    scales = np.divide(lengths[:, 0] ** 2, match, out=np.zeros(count, np.float32), where=match > 0)
    shifts = (np.arange(per_byte) * bits).astype(np.uint8)
    codes = (numbers.astype(np.uint8).reshape(count, dim // per_byte, per_byte) << shifts).sum(axis=2, dtype=np.uint8)
    return codes, scales.astype(np.float32)


def decode(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """Return the levels of codes (t, w), unscaled and still turned: (t, w * 8 / bits)."""
    return _bytes(bits, str(codes.device)).index_select(0, codes.flatten().int()).reshape(len(codes), -1)


@lru_cache(maxsize=16)
def _bytes(bits: int, device: str) -> torch.Tensor:
    """Return the levels of each byte, (256, 8 / bits), on a device."""
    import torch

    numbers = np.arange(256)[:, None] >> np.arange(8 // bits) * bits
    return torch.from_numpy(levels(bits)[numbers & (2**bits - 1)]).to(device)
