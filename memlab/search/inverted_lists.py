"""Inverted lists: for each number of a set (a centroid, a word) the texts that have a token with it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memlab.models.protocols import Floats, Ints


class InvertedLists:
    """For each of ``numbers`` numbers the distinct texts that hold it, ascending.

    Args:
        held: (t,) a number of each token.
        text_of: (t,) the text of each token.
        numbers: Numbers there are.
    """

    def __init__(self, held: NDArray[np.integer], text_of: Ints, numbers: int) -> None:
        stride = int(text_of.max(initial=0)) + 1
        codes = np.unique(held.astype(np.int64) * stride + text_of)
        number, self._texts = np.divmod(codes, stride)
        self._begins = np.searchsorted(number, np.arange(numbers + 1))

    def __len__(self) -> int:
        return len(self._begins) - 1

    def texts(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Return the texts of the lists of some numbers (m,), end to end, and the length of each list (m,).

        >>> InvertedLists(np.array([0, 2, 2]), np.array([5, 5, 6]), 3).texts(np.array([2, 1, 0]))
        (array([5, 6, 5]), array([2, 0, 1]))
        """
        begins = self._begins[numbers]
        lengths = self._begins[numbers + 1] - begins
        ends = np.cumsum(lengths)
        at = np.arange(ends[-1] if len(ends) else 0) + np.repeat(begins - ends + lengths, lengths)
        return self._texts[at], lengths

    def write_bounds(self, out: Floats, ids: Ints, products: Floats) -> None:
        """Set ``out[token, text]`` to the product of the closest centroid of a query token that a text holds.

        out: (t, texts), changed in place. ids, products: (t, p) centroids of each query token, the closest last.
        """
        texts, lengths = self.texts(ids.ravel())
        row = np.repeat(np.repeat(np.arange(len(ids)) * out.shape[1], ids.shape[1]), lengths)
        out.ravel()[row + texts] = np.repeat(products.ravel(), lengths)  # of several values the last stays
