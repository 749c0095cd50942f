"""Boosted trees as arrays of nodes: read from LightGBM's text of a fit, checked, and walked down.

LightGBM (Ke et al., NeurIPS 2017), which is the extra ``learn``, fits the trees. It trusts the text of a model: a wrong
index reads foreign memory. So no file is handed to it, and a saved fit does not need it. The scores are those of
LightGBM bit for bit.
"""

from __future__ import annotations

import functools
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from memlab.pipeline.stage import stage
from memlab.support.errors import MemlabError

Numbers = Annotated[tuple[Annotated[float, Field(allow_inf_nan=False)], ...], Field(strict=False, max_length=1024)]
Numerals = Annotated[tuple[int, ...], Field(strict=False, max_length=1024)]
Features = Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(strict=False, max_length=1024)]
Decisions = Annotated[tuple[Literal[0, 2, 4, 6, 8, 10], ...], Field(strict=False, max_length=1024)]
"""Kinds of numerical splits, sums of bits. 2: a missing value goes left. 4: 0 is missing. 8: nan is."""

Leaves = Annotated[tuple[Annotated[float, Field(ge=-1e100, le=1e100)], ...], Field(strict=False, max_length=1024)]
"""Values of leaves, whose sums stay finite."""

Matrix = NDArray[np.float32]
"""The values of the features, (rows, features); nan where one is missing."""

TINY = 1e-35
"""Largest size of a number that LightGBM takes for zero."""

ROWS = 2**8
"""Rows that are scored at once: what is known of them stays in a core's cache."""

FEW_SPLITS = 8
"""Splits of a tree up to which all ways through it are tabulated: a row's leaf is then looked up."""


@stage
class Tree:
    """One tree of n splits and n + 1 leaves, in LightGBM's terms; a child below 0 is the leaf -1 - child.

    Raises ValueError unless every split but the first, and every leaf, is the child of one earlier split.
    """

    split_feature: Features
    threshold: Numbers
    decision_type: Decisions
    left_child: Numerals
    right_child: Numerals
    leaf_value: Leaves

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
        return self


def lightgbm(what: str = "learned fusion", where: str = "learn/ranker", instead: str = "") -> Any:
    """Return the library, which ``what`` needs; raise MemlabError if it is not installed."""
    try:
        import lightgbm as library
    except ImportError as error:
        raise MemlabError(f"{what} needs LightGBM, which is not installed", where=where,
                          fix=f"pip install 'memlab[learn]'{instead}") from error
    return library


def trees_of(text: str) -> tuple[Tree, ...]:
    """Read the trees of LightGBM's own text; trees without a split, which change no order, are left out."""
    trees = []
    for block in text.split("\nTree=")[1:]:
        lines = dict(line.partition("=")[::2] for line in block.split("end of trees")[0].splitlines())
        if int(lines["num_leaves"]) > 1:
            integers: dict[str, Any] = {name: tuple(map(int, lines[name].split())) for name in (
                "split_feature", "decision_type", "left_child", "right_child")}
            # a split of the missing values from all others has an infinite threshold
            thresholds = np.array(lines["threshold"].split(), float).clip(-1e300, 1e300).tolist()
            trees.append(Tree(**integers, threshold=thresholds,
                              leaf_value=tuple(map(float, lines["leaf_value"].split()))))
    return tuple(trees)


class BoostedTrees:
    """The nodes of all trees as one list, (nodes,) each: splits, and leaves, which lead to themselves.

    ``value`` is that of a leaf. ``split`` is a node's place among the distinct ones: trees often split one feature at
    one threshold, which is decided once for each row.
    """

    def __init__(self, trees: tuple[Tree, ...]) -> None:
        roots, features, thresholds, kinds, left, right, values = ([] for _ in range(7))  # type: ignore[var-annotated]
        for tree in trees:
            first, splits = len(features), len(tree.split_feature)
            leaves = [first + splits + leaf for leaf in range(splits + 1)]
            roots.append(first)
            features += [*tree.split_feature, *(0 for _ in leaves)]
            thresholds += [*tree.threshold, *(0.0 for _ in leaves)]
            kinds += [*tree.decision_type, *(0 for _ in leaves)]
            for children, side in ((tree.left_child, left), (tree.right_child, right)):
                side += [*(first + child if child >= 0 else leaves[-1 - child] for child in children), *leaves]
            values += [*(0.0 for _ in range(splits)), *tree.leaf_value]
        levels = [0] * len(values)
        for node, (one, other) in enumerate(zip(left, right)):
            if one > node:
                levels[one] = levels[other] = levels[node] + 1
        self.depth = max(levels, default=0)
        self.roots, self.feature = np.array(roots, np.int64), np.array(features, np.int64)
        self.children = np.array([left, right], np.int64).T.ravel()
        self.value = np.array(values)
        keys = np.column_stack([features, thresholds, kinds]) if trees else np.zeros((0, 3))
        distinct, self.split = np.unique(keys, axis=0, return_inverse=True)
        self.tested, kind = distinct[:, 0].astype(np.int64), distinct[:, 2].astype(np.int64)
        self.threshold, self.zero_missing, self.missing_right = distinct[:, 1, None], kind & 4 > 0, kind & 2 == 0
        self.copy = np.where(kind & 8 == 0, 2, self.missing_right)  # of the columns: see ``_goes_right``
        most = max((len(tree.split_feature) for tree in trees), default=0)
        self.splits = np.minimum(self.roots + np.arange(most)[:, None], len(values) - 1)  # behind a smaller tree's: any
        self.table = self._values_of_codes(most) if most <= FEW_SPLITS else None

    def scores(self, matrix: Matrix) -> NDArray[np.float64]:
        """Return the sum of the trees' leaves for each row, (rows,), added in the order of the trees."""
        total = np.zeros(len(matrix))
        for start in range(0, len(matrix), ROWS):
            total[start:start + ROWS] = self._leaf_values(matrix[start:start + ROWS]).sum(axis=0)
        return total

    def _leaf_values(self, matrix: Matrix) -> NDArray[np.float64]:
        """Return the value of the leaf of each row in each tree, (trees, rows)."""
        if self.table is None:
            return self.value[self._leaves(matrix)]
        right, code = self._goes_right(matrix).view(np.uint8), np.zeros((len(self.roots), len(matrix)), np.uint8)
        for bit, nodes in enumerate(self.splits):
            code |= right[self.split[nodes]] << bit
        return self.table.take(code + (np.arange(len(self.roots)) << len(self.splits))[:, None])

    def _values_of_codes(self, splits: int) -> NDArray[np.float64]:
        """Return the value of the leaf for each code, whose bits are the ways at a tree's splits, (trees, codes)."""
        code, node = np.arange(1 << splits), np.repeat(self.roots[:, None], 1 << splits, axis=1)
        for _ in range(self.depth):
            node = self.children[2 * node + (code >> (node - self.roots[:, None]) & 1)]
        return self.value[node]

    def _leaves(self, matrix: Matrix) -> NDArray[np.int64]:
        """Return the leaf of each row in each tree, (trees, rows)."""
        right, rows = self._goes_right(matrix), np.arange(len(matrix))
        node = np.repeat(self.roots[:, None], len(matrix), axis=1)
        for _ in range(self.depth):
            node = self.children.take(2 * node + right[self.split.take(node), rows])
        return node

    def _goes_right(self, matrix: Matrix) -> NDArray[np.bool_]:
        """Return whether each row goes right at each distinct split, (splits, rows)."""
        unknown = np.isnan(matrix)
        # three copies of the columns: a missing value goes left, goes right, or counts as 0
        columns = np.concatenate([np.where(unknown, value, matrix).T for value in (-np.inf, np.inf, 0)],
                                 dtype=np.float64)
        value = columns[self.tested + self.copy * matrix.shape[1]]
        right = value > self.threshold
        if self.zero_missing.any():
            missing = self.zero_missing[:, None] & (np.abs(value) <= TINY)
            right = np.where(missing, self.missing_right[:, None], right)
        return right


@functools.lru_cache(maxsize=32)
def boosted_trees(trees: tuple[Tree, ...]) -> BoostedTrees:
    """Return these trees, ready to be evaluated."""
    return BoostedTrees(trees)
