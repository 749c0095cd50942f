"""Boosted trees evaluated without branches, and what each feature adds to the lead of one row over another.

A walk down each tree for each row waits for branches that no processor can predict. Here each distinct split of all
trees is compared with all rows at once. A split that a row passes on the right takes away the leaves on its left, and
the first leaf that remains is the row's (QuickScorer: Lucchese et al., SIGIR 2015). The scores are those of LightGBM
bit for bit, and a saved fit needs no LightGBM.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf

import numpy as np
from numpy.typing import NDArray

from memlab.learn.ranker.trees import Tree

Columns = Sequence[NDArray[np.float32]]
"""The values of each feature, (n,) each; nan where one is missing."""

Bytes = NDArray[np.uint8]
Bools = NDArray[np.bool_]
Split = tuple[int, int, float]
"""Feature, kind (LightGBM's decision type) and threshold."""

DEFAULT_LEFT = 2
"""Bit of a kind: a missing value goes left."""

ZERO, NAN = 4, 8
"""Bits of a kind: what counts as missing; if neither is set, nothing does, and nan is taken for 0."""

TINY = np.float32(1e-35)
"""Largest size of a number that LightGBM takes for zero."""

ONES = np.array([byte.bit_count() for byte in range(256)], np.uint8)
count_ones = getattr(np, "bitwise_count", ONES.take)  # NumPy 1 has no function for it

CELLS = 2**24
"""Comparisons of splits with rows in memory at once."""

ROWS = 2**15
"""Rows at once: the comparisons of one tree then stay in a core's cache."""


@dataclass(frozen=True)
class Group:
    """The splits of one feature and kind. rows: their place among all splits; thresholds: (splits, 1), rounded down."""

    feature: int
    kind: int
    rows: slice
    thresholds: NDArray[np.float32]


@dataclass(frozen=True)
class Block:
    """Eight leaves of a tree. splits: those that can take some of them away; masks (splits, 1): which ones, as bits."""

    splits: NDArray[np.int64]
    masks: Bytes

    def first(self, right: Bytes) -> Bytes:
        """Return the first leaf that remains, 0 to 7, or 8 if none does, (rows,).

        right: (splits, rows) 255 where a row passes a split on the right, else 0.
        """
        taken = right[self.splits]
        gone = np.bitwise_or.reduce(np.bitwise_and(taken, self.masks, out=taken), axis=0)
        below_lowest_zero: Bytes = (~gone & (gone + np.uint8(1))) - np.uint8(1)
        return count_ones(below_lowest_zero)


@dataclass(frozen=True)
class Paths:
    """A tree whose leaves are numbered from left to right.

    splits: (s,) the number of each split, sorted by feature. start, middle, end: (s,) the leaves from ``start`` up to
    ``middle`` are on its left, those up to ``end`` on its right. features: (f,) its distinct features; first: (f,) the
    place of each one's first split. values: (leaves,).
    """

    splits: NDArray[np.int64]
    start: NDArray[np.int64]
    middle: NDArray[np.int64]
    end: NDArray[np.int64]
    features: NDArray[np.int64]
    first: NDArray[np.int64]
    values: NDArray[np.float64]

    def sides(self) -> tuple[Bools, Bools]:
        """Return which leaves are on the left of each split, and which on its right, (s, leaves) each."""
        leaf = np.arange(len(self.values))
        from_middle = leaf >= self.middle[:, None]
        return (leaf >= self.start[:, None]) & ~from_middle, from_middle & (leaf < self.end[:, None])

    def by_feature(self, shut: Bytes) -> Bytes:
        """Return the leaves that each feature closes, (f, ...), from those of each split, (s, ...); leaves are bits."""
        joined = shut[self.first]
        for feature, begin in enumerate(self.first):
            for split in range(begin + 1, self.first[feature + 1] if feature + 1 < len(self.first) else len(shut)):
                joined[feature] |= shut[split]
        return joined


class BoostedTrees:
    """Boosted trees, ready to be evaluated."""

    def __init__(self, trees: tuple[Tree, ...]) -> None:
        number = {split: i for i, split in enumerate(sorted({split for tree in trees for split in _splits(tree)}))}
        self.size = len(number)
        self.groups = [_group(feature, kind, number, list(splits))
                       for (feature, kind), splits in groupby(number, key=lambda split: split[:2])]
        self.paths = [_paths(tree, number) for tree in trees]
        self.blocks = [_blocks(paths) for paths in self.paths]

    def scores(self, columns: Columns, rows: int) -> NDArray[np.float64]:
        """Return the sum of the trees' leaves for each of so many rows, (rows,)."""
        step = min(max(CELLS // max(self.size, 1), 1), ROWS)
        total, memory = np.zeros(rows), np.empty((self.size, step), np.uint8)
        for start in range(0, rows, step):  # on one core: these steps are so short that threads would wait
            mine = slice(start, min(start + step, rows))
            right = self._right([column[mine] for column in columns], memory[:, :mine.stop - start])
            for paths, blocks in zip(self.paths, self.blocks):
                leaf = blocks[0].first(right).astype(np.min_scalar_type(len(paths.values)), copy=False)
                for number, block in enumerate(blocks[1:], 1):
                    leaf = leaf + (leaf == 8 * number) * block.first(right)
                total[mine] += paths.values.take(leaf)
        return total

    def leads(self, ahead: Columns, behind: Columns, rows: int) -> NDArray[np.float64]:
        """Return what each feature adds to the lead of the rows ``ahead`` over the rows ``behind``, (rows, features).

        The lead is the difference of the scores. A feature's share is its Shapley value where the features outside a
        coalition have the values of the row behind (baseline Shapley: Sundararajan and Najmi, ICML 2020), so that
        features with the same value in both rows add nothing, and all shares add up to the lead.
        """
        shares = np.zeros((len(ahead), rows))
        most = max([1, 2 * self.size, *(len(paths.splits) * len(paths.values) for paths in self.paths)])
        step = min(max(CELLS // most, 1), ROWS)
        for start in range(0, rows, step):
            mine = slice(start, min(start + step, rows))
            memory = np.empty((2, self.size, mine.stop - start), np.uint8)
            right = [self._right([column[mine] for column in columns], part)
                     for columns, part in zip((ahead, behind), memory)]
            for paths in self.paths:
                shares[paths.features, mine] += _leads(paths, *(part[paths.splits] for part in right))
        return shares.T

    def _right(self, columns: Columns, memory: Bytes) -> Bytes:
        """Return ``memory`` (splits, rows) with 255 where a row passes a split on the right, else 0."""
        right = memory.view(np.bool_)
        for feature, of_feature in groupby(self.groups, key=lambda group: group.feature):
            values = columns[feature]
            missing = np.isnan(values)
            known = np.where(missing, np.float32(0), values) if missing.any() else values
            for group in of_feature:
                out = right[group.rows]
                if not group.kind & NAN:
                    np.greater(known, group.thresholds, out=out)
                elif group.kind & DEFAULT_LEFT:
                    np.greater(values, group.thresholds, out=out)
                else:
                    np.logical_not(np.less_equal(values, group.thresholds, out=out), out=out)
                if group.kind & ZERO:
                    out[:, np.abs(known) <= TINY] = not group.kind & DEFAULT_LEFT
        return np.negative(memory, out=memory)


@functools.lru_cache(maxsize=32)
def boosted_trees(trees: tuple[Tree, ...]) -> BoostedTrees:
    """Return these trees, ready to be evaluated."""
    return BoostedTrees(trees)


def _splits(tree: Tree) -> list[Split]:
    """Return the splits of a tree in its order."""
    return list(zip(tree.split_feature, tree.decision_type, tree.threshold))


def _group(feature: int, kind: int, number: dict[Split, int], splits: list[Split]) -> Group:
    """Return the splits of one feature and kind, which have consecutive numbers."""
    first = number[splits[0]]
    return Group(feature, kind, slice(first, first + len(splits)),
                 np.array([_rounded_down(threshold) for *_, threshold in splits], np.float32)[:, None])


def _rounded_down(threshold: float) -> np.float32:
    """Return the largest float32 that is not above a threshold: it parts the float32 numbers as the threshold does."""
    with np.errstate(over="ignore"):
        near = np.float32(threshold)
    return near if float(near) <= threshold else np.nextafter(near, np.float32(-inf))


def _paths(tree: Tree, number: dict[Split, int]) -> Paths:
    """Return a tree with its leaves from left to right."""
    count = len(tree.leaf_value)
    sizes = [1] * (count - 1)  # leaves under each split; a child stands behind its parent
    for i in reversed(range(count - 1)):
        sizes[i] = sum(sizes[child] if child >= 0 else 1 for child in (tree.left_child[i], tree.right_child[i]))
    starts, middles, values = [0] * (count - 1), [0] * (count - 1), np.zeros(count)
    for i in range(count - 1):
        middles[i] = starts[i] + (sizes[tree.left_child[i]] if tree.left_child[i] >= 0 else 1)
        for child, leaf in ((tree.left_child[i], starts[i]), (tree.right_child[i], middles[i])):
            if child >= 0:
                starts[child] = leaf
            else:
                values[leaf] = tree.leaf_value[-1 - child]
    order = np.argsort(tree.split_feature, kind="stable")
    features, first = np.unique(np.array(tree.split_feature)[order], return_index=True)
    middle, start = np.array(middles)[order], np.array(starts)[order]
    return Paths(np.array([number[split] for split in _splits(tree)])[order], start, middle,
                 start + np.array(sizes)[order], features, first, values)


def _blocks(paths: Paths) -> list[Block]:
    """Return the leaves of a tree in eights."""
    blocks: list[Block] = []
    left, _ = paths.sides()
    for start in range(0, len(paths.values), 8):
        of_block = left[:, start:start + 8]
        some = np.flatnonzero(of_block.any(axis=1))
        blocks.append(Block(paths.splits[some], np.packbits(of_block[some], axis=1, bitorder="little")))
    return blocks


def _leads(paths: Paths, ahead: Bytes, behind: Bytes) -> NDArray[np.float64]:
    """Return what each feature of one tree adds to the lead, (f, m).

    ahead, behind: (s, m) 255 where each row of a pair passes a split on the right, else 0. A mixture, a row with some
    values of one and some of the other, reaches a leaf if none of its values closes the way. Let A features close it
    with the value of the row behind alone, and B with that of the row ahead alone. With a leaf's value v, each of the
    A features has the share v (A - 1)! B! / (A + B)!, each of the B features -v A! (B - 1)! / (A + B)!.
    """
    count = ahead.shape[1]
    left, right = (np.packbits(side, axis=1, bitorder="little")[:, :, None] for side in paths.sides())
    shut_ahead, shut_behind = (  # (f, leaves / 8, m): the left leaves where a row goes right, else the right ones
        paths.by_feature((passed[:, None] & (left ^ right)) ^ right) for passed in (ahead, behind))
    reached = ~np.bitwise_or.reduce(shut_ahead & shut_behind, axis=0)
    leaves = np.unpackbits(reached, axis=0, count=len(paths.values), bitorder="little").view(np.bool_)
    leaf, pair = np.divmod(np.flatnonzero(leaves), count)  # (r,): each leaf that a mixture of a pair reaches
    byte, bit, value = leaf // 8 * count + pair, (1 << leaf % 8).astype(np.uint8), paths.values[leaf]

    def only(shut: Bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the features (k,) with such a bit, and for which of the r leaves, (k,)."""
        return np.divmod(np.flatnonzero(shut.reshape(len(shut), -1).take(byte, axis=1) & bit != 0), len(leaf))

    feature_a, leaf_a = only(shut_behind & ~shut_ahead)
    feature_b, leaf_b = only(shut_ahead & ~shut_behind)
    a, b = np.bincount(leaf_a, minlength=len(leaf)), np.bincount(leaf_b, minlength=len(leaf))
    weights = _weights(len(paths.features))
    added = np.concatenate([(value * weights[a, b])[leaf_a], -(value * weights[b, a])[leaf_b]])
    at = np.concatenate([feature_a, feature_b]) * count + pair[np.concatenate([leaf_a, leaf_b])]
    shares = np.bincount(at, weights=added, minlength=len(paths.features) * count)
    return shares.astype(np.float64, copy=False).reshape(-1, count)  # of no entry they are integers


@functools.cache
def _weights(most: int) -> NDArray[np.float64]:
    """Return (a - 1)! b! / (a + b)! for a and b up to ``most``, (most + 1, most + 1); 0 for a = 0."""
    a = np.arange(1.0, most + 1)
    table = np.zeros((most + 1, most + 1))
    table[1:, 0] = 1 / a
    for b in range(1, most + 1):
        table[1:, b] = table[1:, b - 1] * b / (a + b)
    return table
