"""Boosted trees as plain arrays: checked on construction, read from LightGBM's text of a fit, and evaluated.

LightGBM (Ke et al., NeurIPS 2017), which is the extra ``learn``, fits the trees. It trusts the text of a model: a wrong
index reads foreign memory. So no file is handed to it, and a saved fit does not need it.

A walk down each tree for each row waits for branches that no processor can predict. Here each distinct split of all
trees is compared with all rows at once. A split that a row passes on the right takes away the leaves on its left, and
the first leaf that remains is the row's (QuickScorer: Lucchese et al., SIGIR 2015). The scores are those of LightGBM
bit for bit.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from itertools import groupby
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from memlab.errors import MemlabError
from memlab.stage import stage

Numerals = Annotated[tuple[int, ...], Field(strict=False, max_length=1024)]
Numbers = Annotated[tuple[float, ...], Field(strict=False, max_length=1024)]
DECISIONS = frozenset({0, 2, 4, 6, 8, 10})
"""Kinds of numerical splits in LightGBM's text: 2 sends a missing value left; 4 and 8 say what is missing."""

LARGEST = 1e100
"""Largest value of a leaf: sums of leaves stay finite."""

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


@stage
class Tree:
    """One tree of n splits and n + 1 leaves, in LightGBM's terms; a child below 0 is the leaf -1 - child.

    Raises ValueError unless every split but the first, and every leaf, is the child of one earlier split.
    """

    split_feature: Numerals
    threshold: Numbers
    decision_type: Numerals
    left_child: Numerals
    right_child: Numerals
    leaf_value: Numbers

    @model_validator(mode="after")
    def _is_a_tree(self) -> Tree:
        splits = len(self.split_feature)
        lengths = {len(getattr(self, name)) for name in ("threshold", "decision_type", "left_child", "right_child")}
        if not splits or lengths != {splits} or len(self.leaf_value) != splits + 1:
            raise ValueError("a tree's lists do not fit together")
        children = sorted(self.left_child + self.right_child)
        if children != [*range(-splits - 1, 0), *range(1, splits)]:
            raise ValueError("a tree's splits and leaves are not each the child of one split")
        if any(0 <= child <= parent for side in (self.left_child, self.right_child)
               for parent, child in enumerate(side)):
            raise ValueError("a tree's split lies above its own parent")
        if not all(map(math.isfinite, self.threshold)) or not all(abs(value) <= LARGEST for value in self.leaf_value):
            raise ValueError("a tree holds a number that is not finite, or a leaf too large to add up")
        if not DECISIONS.issuperset(self.decision_type) or min(self.split_feature) < 0:
            raise ValueError("a tree holds an unknown kind of split")
        return self

    def splits(self) -> list[Split]:
        """Return the splits in their order."""
        return list(zip(self.split_feature, self.decision_type, self.threshold))


FIELDS = tuple(field.name for field in dataclasses.fields(Tree))


def lightgbm(what: str = "learned fusion", where: str = "learn/ranker", instead: str = "") -> Any:
    """Return the library, which ``what`` needs; raise MemlabError if it is not installed."""
    try:
        import lightgbm as library
    except ImportError as error:
        raise MemlabError(f"{what} needs LightGBM, which is not installed", where=where,
                          fix=f"pip install 'memlab[learn]'{instead}") from error
    return library


def trees_of(text: str) -> tuple[Tree, ...]:
    """Read the trees of LightGBM's own text; trees without a split, which change no order, are left out.

    Raises MemlabError for a text of another form.
    """
    try:
        trees = [_tree(block) for block in text.split("\nTree=")[1:]]
    except (KeyError, ValueError) as error:
        raise MemlabError(f"LightGBM's text of a model cannot be read ({' '.join(repr(error).split())[:120]})",
                          where="learn/ranker", fix="pip install 'memlab[learn]'") from error
    return tuple(tree for tree in trees if tree is not None)


def _tree(block: str) -> Tree | None:
    """Return the tree of a block of LightGBM's text; None if it has no split."""
    lines = dict(line.partition("=")[::2] for line in block.split("end of trees")[0].splitlines() if "=" in line)
    if int(lines["num_leaves"]) <= 1:
        return None
    values: dict[str, Any] = {name: tuple(map(_finite if name in ("threshold", "leaf_value") else int,
                                              lines[name].split())) for name in FIELDS}
    return Tree(**values)


def _finite(word: str) -> float:
    """Read a number; a split of the missing values from all others has an infinite threshold."""
    return min(max(float(word), -1e300), 1e300)


class Paths:
    """The leaves of a tree from left to right, and on which side of each split they are.

    splits: (s,) the number of each split among those of all trees, sorted by feature. left, right: (s, leaves / 8) bits
    of the leaves on its left and on its right. features: (f,) the distinct features; first: (f,) the place of each
    one's first split. values: (leaves,). blocks: for each eight leaves the splits that can take some of them away, and
    which ones, as bits (splits, 1).
    """

    def __init__(self, tree: Tree, number: dict[Split, int]) -> None:
        count = len(tree.split_feature)
        sides = np.zeros((2, count, count + 1), np.bool_)
        for split in reversed(range(count)):  # a child stands behind its parent
            for side, child in zip(sides, (tree.left_child[split], tree.right_child[split])):
                if child < 0:
                    side[split, -1 - child] = True
                else:
                    side[split] = sides[0, child] | sides[1, child]
        nodes, leaves = [0], []
        while nodes:
            node = nodes.pop()
            if node < 0:
                leaves.append(-1 - node)
            else:
                nodes += [tree.right_child[node], tree.left_child[node]]
        order = np.argsort(tree.split_feature, kind="stable")
        self.left, self.right = np.packbits(sides[:, order][:, :, leaves], axis=2, bitorder="little")
        self.splits = np.array([number[split] for split in tree.splits()])[order]
        self.features, self.first = np.unique(np.array(tree.split_feature)[order], return_index=True)
        self.values = np.array(tree.leaf_value)[leaves]
        able = [np.flatnonzero(of_block) for of_block in self.left.T]
        self.blocks = [(self.splits[some], self.left[some, block, None]) for block, some in enumerate(able)]

    def leaf(self, right: Bytes) -> NDArray[np.unsignedinteger]:
        """Return the leaf of each row, (rows,).

        right: (splits of all trees, rows) 255 where a row passes a split on the right, else 0.
        """
        leaf = np.zeros(right.shape[1], np.min_scalar_type(len(self.values)))
        for number, (splits, masks) in enumerate(self.blocks):
            taken = right[splits]
            gone = np.bitwise_or.reduce(np.bitwise_and(taken, masks, out=taken), axis=0)
            below_lowest_zero = (~gone & (gone + np.uint8(1))) - np.uint8(1)  # all eight ones: the next block has it
            first = count_ones(below_lowest_zero)
            leaf = (leaf == 8 * number) * first + leaf if number else first.astype(leaf.dtype)
        return leaf

    def leads(self, ahead: Bytes, behind: Bytes) -> NDArray[np.float64]:
        """Return what each feature adds to the lead of the rows ahead over those behind, (f, m).

        ahead, behind: as for ``leaf``, of m rows. A mixture, a row with some values of one and some of the other,
        reaches a leaf if none of its values closes the way. Let A features close it with the value of the row behind
        alone, and B with that of the row ahead alone. With a leaf's value v, each of the A features has the share
        v (A - 1)! B! / (A + B)!, each of the B features -v A! (B - 1)! / (A + B)!.
        """
        count = ahead.shape[1]
        left, right = self.left[:, :, None], self.right[:, :, None]
        shut_ahead, shut_behind = (  # (f, leaves / 8, m): the left leaves where a row goes right, else the right ones
            np.bitwise_or.reduceat((passed[self.splits][:, None] & (left ^ right)) ^ right, self.first, axis=0)
            for passed in (ahead, behind))
        reached = ~np.bitwise_or.reduce(shut_ahead & shut_behind, axis=0)
        leaves = np.unpackbits(reached, axis=0, count=len(self.values), bitorder="little").view(np.bool_)
        leaf, pair = np.divmod(np.flatnonzero(leaves), count)  # (r,): each leaf that a mixture of a pair reaches
        byte, bit, value = leaf // 8 * count + pair, (1 << leaf % 8).astype(np.uint8), self.values[leaf]

        def only(shut: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
            """Return the features (k,) with such a bit, and for which of the r leaves, (k,)."""
            return np.divmod(np.flatnonzero(shut.reshape(len(shut), -1).take(byte, axis=1) & bit != 0), len(leaf))

        feature_a, leaf_a = only(shut_behind & ~shut_ahead)
        feature_b, leaf_b = only(shut_ahead & ~shut_behind)
        a, b = np.bincount(leaf_a, minlength=len(leaf)), np.bincount(leaf_b, minlength=len(leaf))
        weights = _weights(len(self.features))
        added = np.concatenate([(value * weights[a, b])[leaf_a], -(value * weights[b, a])[leaf_b]])
        at = np.concatenate([feature_a, feature_b]) * count + pair[np.concatenate([leaf_a, leaf_b])]
        shares = np.bincount(at, weights=added, minlength=len(self.features) * count)
        return shares.astype(np.float64, copy=False).reshape(-1, count)  # of no entry they are integers


class BoostedTrees:
    """Boosted trees, ready to be evaluated."""

    def __init__(self, trees: tuple[Tree, ...]) -> None:
        number = {split: i for i, split in enumerate(sorted({split for tree in trees for split in tree.splits()}))}
        self.size = len(number)
        self.groups = []  # splits of one feature and kind: their numbers, and thresholds (splits, 1) rounded down
        for (feature, kind), splits in groupby(number, key=lambda split: split[:2]):
            thresholds = [threshold for *_, threshold in splits]
            first = number[feature, kind, thresholds[0]]
            self.groups.append((feature, kind, slice(first, first + len(thresholds)),
                                np.array([_rounded_down(value) for value in thresholds], np.float32)[:, None]))
        self.paths = [Paths(tree, number) for tree in trees]

    def scores(self, columns: Columns, rows: int) -> NDArray[np.float64]:
        """Return the sum of the trees' leaves for each of so many rows, (rows,)."""
        step = min(max(CELLS // max(self.size, 1), 1), ROWS)
        total, memory = np.zeros(rows), np.empty((self.size, step), np.uint8)
        for start in range(0, rows, step):  # on one core: these steps are so short that threads would wait
            mine = slice(start, min(start + step, rows))
            right = self._right([column[mine] for column in columns], memory[:, :mine.stop - start])
            for paths in self.paths:
                total[mine] += paths.values.take(paths.leaf(right))
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
                shares[paths.features, mine] += paths.leads(*right)
        return shares.T

    def _right(self, columns: Columns, memory: Bytes) -> Bytes:
        """Return ``memory`` (splits, rows) with 255 where a row passes a split on the right, else 0."""
        right = memory.view(np.bool_)
        for feature, of_feature in groupby(self.groups, key=lambda group: group[0]):
            values = columns[feature]
            missing = np.isnan(values)
            known = np.where(missing, np.float32(0), values) if missing.any() else values
            for _, kind, numbers, thresholds in of_feature:
                out = right[numbers]
                if not kind & NAN:
                    np.greater(known, thresholds, out=out)
                elif kind & DEFAULT_LEFT:
                    np.greater(values, thresholds, out=out)
                else:
                    np.logical_not(np.less_equal(values, thresholds, out=out), out=out)
                if kind & ZERO:
                    out[:, np.abs(known) <= TINY] = not kind & DEFAULT_LEFT
        return np.negative(memory, out=memory)


@functools.lru_cache(maxsize=32)
def boosted_trees(trees: tuple[Tree, ...]) -> BoostedTrees:
    """Return these trees, ready to be evaluated."""
    return BoostedTrees(trees)


def _rounded_down(threshold: float) -> np.float32:
    """Return the largest float32 that is not above a threshold: it parts the float32 numbers as the threshold does."""
    with np.errstate(over="ignore"):
        near = np.float32(threshold)
    return near if float(near) <= threshold else np.nextafter(near, np.float32(-math.inf))


@functools.cache
def _weights(most: int) -> NDArray[np.float64]:
    """Return (a - 1)! b! / (a + b)! for a and b up to ``most``, (most + 1, most + 1); 0 for a = 0."""
    a = np.arange(1.0, most + 1)
    table = np.zeros((most + 1, most + 1))
    table[1:, 0] = 1 / a
    for b in range(1, most + 1):
        table[1:, b] = table[1:, b - 1] * b / (a + b)
    return table
