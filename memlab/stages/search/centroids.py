"""Centroids of token vectors by spherical k-means in two levels, and inverted lists."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memlab.models.protocols import Floats, Ints
from memlab.stages.search.faiss_gpu import load_faiss
from memlab.stages.search.maxsim import columns
from memlab.store.token_vectors import TokenVectors, gather_tokens
from memlab.support.progress import Step


class InvertedLists:
    """For each of ``numbers`` numbers the distinct texts that hold it, ascending.

    Args:
        held: (t,) a number of each token.
        text_of: (t,) the text of each token.
        numbers: Numbers there are.
    """

    def __init__(self, held: NDArray[np.integer], text_of: NDArray[np.integer], numbers: int) -> None:
        stride = int(text_of.max(initial=0)) + 1
        codes = held.astype(np.int64) * stride
        codes += text_of
        codes.sort()  # in place: a memory of a million turns has 27 million tokens
        codes = codes[np.diff(codes, prepend=-1) > 0]
        self._begins = np.searchsorted(codes, np.arange(numbers + 1) * stride)
        self._texts = np.remainder(codes, stride, out=codes).astype(text_of.dtype)

    def __len__(self) -> int:
        return len(self._begins) - 1

    def texts(self, numbers: Ints) -> tuple[NDArray[np.integer], Ints]:
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


POINTS = 32
"""Vectors per centroid that k-means looks at."""

ROUNDS, REFINEMENTS = 4, 2
"""Rounds of k-means within a group, and of all centroids together behind it."""

OF_GROUPS = 10
"""Rounds of the k-means that groups the centroids."""

MOST = 16384
"""Centroids at most: comparing a query of ten tokens with them takes some milliseconds."""

GROUPS = 5
"""Groups of centroids that each vector is compared with."""

TOGETHER = 1 << 16
"""Vectors that are compared at a time: some hundreds for each group, and 100 MB."""


def suitable_number(tokens: int) -> int:
    """Return the power of two next to 10 times the root of the number of tokens, at most ``MOST``.

    >>> suitable_number(136_000), suitable_number(10), suitable_number(10**9)
    (4096, 10, 16384)
    """
    return min(MOST, tokens, 2 ** round(np.log2(10 * max(tokens, 1) ** 0.5)))


class TokenCentroids:
    """Unit vectors (k, dim) in the middle of groups of token vectors."""

    def __init__(self, vectors: Floats) -> None:
        self.vectors = np.ascontiguousarray(vectors, np.float32)
        self._groups: tuple[Floats, list[Ints]] | None = None

    def __len__(self) -> int:
        return len(self.vectors)

    @classmethod
    def train(cls, texts: TokenVectors, number: int, seed: int, step: Step | None = None) -> TokenCentroids:
        """Return the centroids of a sample of the tokens of some texts; the order of the texts does not matter.

        ``step`` is called with the number of centroids that k-means has placed. Raises MemlabError if FAISS is not
        installed.
        """
        sample = _sample(texts, POINTS * number, seed)
        number = min(number, len(sample))
        centroids = cls(_place_centroids(sample, number, seed, step))
        for _ in range(REFINEMENTS):
            centroids = cls(_means(sample, centroids.nearest(sample), centroids.vectors))
        return centroids

    def nearest(self, vectors: Floats) -> Ints:
        """Return a centroid of each vector (t, dim): the nearest one, or one almost as near, (t,).

        Each vector is compared with the centroids of the ``GROUPS`` groups that are nearest to it, all vectors of a
        group in one product. Raises MemlabError if FAISS is not installed.
        """
        if self._groups is None:
            middles, group = _kmeans(self.vectors, _groups_of(len(self)), seed=0, rounds=OF_GROUPS)
            self._groups = middles, [np.flatnonzero(group == i) for i in range(len(middles))]
        return np.concatenate([self._nearest(np.ascontiguousarray(vectors[i:i + TOGETHER], np.float32), *self._groups)
                               for i in range(0, len(vectors), TOGETHER)] or [np.empty(0, np.int64)])

    def _nearest(self, vectors: Floats, middles: Floats, members: list[Ints]) -> Ints:
        import torch  # as in ``closest``

        centroid = torch.zeros(len(vectors), dtype=torch.int64)
        highest = torch.full((len(vectors),), -torch.inf)
        with torch.inference_mode():
            asked = torch.from_numpy(vectors)
            near = torch.topk(asked @ torch.from_numpy(middles).T, min(GROUPS, len(members)), dim=1).indices
            group, order = torch.sort(near.flatten(), stable=True)
            ends = torch.searchsorted(group, torch.arange(len(members)), right=True)
            rows_of = torch.tensor_split(order // near.shape[1], ends[:-1])
            for rows, group_members in zip(rows_of, members):
                if len(rows) and len(group_members):
                    best = (asked[rows] @ torch.from_numpy(self.vectors[group_members]).T).max(dim=1)
                    higher = best.values > highest[rows]
                    rows, position = rows[higher], best.indices[higher]
                    highest[rows] = best.values[higher]
                    centroid[rows] = torch.from_numpy(group_members)[position]
        return centroid.numpy()

    def closest(self, query: Floats, number: int) -> tuple[Ints, Floats]:
        """Return the ``number`` closest centroids of each query token (t, dim), the closest last, and their products.

        Both have the shape (t, number), with fewer columns if there are fewer centroids.
        """
        import torch  # its threads also multiply the candidates' vectors; those of numpy would get in their way

        with torch.inference_mode():
            # centroids by query tokens: half the time of the product the other way round
            products = torch.from_numpy(self.vectors) @ columns(query)
            best = torch.topk(products.T[:len(query)].contiguous(), min(number, len(self)), dim=1)
        return best.indices.numpy()[:, ::-1], best.values.numpy()[:, ::-1]


def _groups_of(number: int) -> int:
    return max(1, round(number**0.5))


def _place_centroids(sample: Floats, number: int, seed: int, step: Step | None) -> Floats:
    """Return centroids by k-means within groups of the sample, which are themselves made by k-means.

    With g groups of equal size a round costs 2 g products per vector, where k-means over g * g centroids takes g * g.
    """
    group = _kmeans(sample, _groups_of(number), seed)[1]
    order = np.argsort(group, kind="stable")
    members = np.split(sample[order], np.flatnonzero(np.diff(group[order])) + 1)
    ends = np.round(np.cumsum([len(part) for part in members]) * (number / len(sample))).astype(np.int64)
    centroids = []
    for part, k in zip(members, np.diff(ends, prepend=0)):
        if k:
            centroids.append(_kmeans(part, k, seed)[0])
            if step:
                step(int(k))
    return np.concatenate(centroids)


def _kmeans(vectors: Floats, number: int, seed: int, rounds: int = ROUNDS) -> tuple[Floats, Ints]:
    """Return centroids of unit length (number, dim), and the nearest one of each vector (t,)."""
    faiss = load_faiss("search.late", ", or search.late.exact_below=1000000000")
    clustering = faiss.Kmeans(vectors.shape[1], int(number), niter=rounds, seed=seed, spherical=True,
                              min_points_per_centroid=1, max_points_per_centroid=len(vectors))
    clustering.train(np.ascontiguousarray(vectors))
    return clustering.centroids, clustering.index.search(vectors, 1)[1][:, 0]


def _means(vectors: Floats, centroid: Ints, before: Floats) -> Floats:
    """Return the mean direction of the vectors of each centroid, and the centroid as before where it has none."""
    order = np.argsort(centroid, kind="stable")
    starts = np.flatnonzero(np.diff(centroid[order], prepend=-1))
    means = np.add.reduceat(vectors[order], starts, axis=0)
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    after = before.copy()
    after[centroid[order][starts]] = np.divide(means, lengths, where=lengths > 0, out=before[centroid[order][starts]])
    return after


def _sample(texts: TokenVectors, tokens: int, seed: int) -> Floats:
    """Return about so many token vectors, of whole texts that are drawn by their keys."""
    order = np.lexsort(texts.keys().T)
    drawn = np.random.default_rng(seed).permutation(order)
    enough = int(np.searchsorted(np.cumsum(texts.lengths[drawn]), tokens)) + 1
    chosen = texts.take(drawn[:enough])
    begins = np.cumsum(chosen.lengths) - chosen.lengths
    sample = np.empty((int(chosen.lengths.sum()), chosen.blocks[0].dim), np.float32)
    for rows, _, vectors in chosen.pieces(1 << 62):  # by block; the sample is in the order of drawing
        _, at = gather_tokens(begins[rows], chosen.lengths[rows])
        sample[at] = vectors
    return sample[:tokens]
