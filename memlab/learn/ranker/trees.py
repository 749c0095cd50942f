"""Boosted trees as plain arrays: checked on construction, written as JSON, evaluated by LightGBM.

LightGBM trusts the text of a model: a wrong index in a file reads foreign memory. So a file is never handed to it; its
text is written anew from arrays that have been checked. LightGBM (Ke et al., NeurIPS 2017) is the extra ``learn``.
"""

from __future__ import annotations

import functools
import math
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import numpy as np
from pydantic import Field, model_validator

from memlab.errors import MemlabError
from memlab.runtime.cores import usable_cores
from memlab.stage import stage

Ints = Annotated[tuple[int, ...], Field(strict=False, max_length=4096)]
Numbers = Annotated[tuple[float, ...], Field(strict=False, max_length=4096)]
DECISIONS = frozenset({0, 2, 4, 6, 8, 10})
"""Kinds of numerical splits in LightGBM's text: 2 sends a missing value left; 4 and 8 say what is missing."""


@stage
class Tree:
    """One tree of n splits and n + 1 leaves, in LightGBM's terms; a child below 0 is the leaf -1 - child.

    Raises ValueError unless every split but the first, and every leaf, is the child of one earlier split.
    """

    split_feature: Ints
    threshold: Numbers
    decision_type: Ints
    left_child: Ints
    right_child: Ints
    leaf_value: Numbers
    leaf_count: Ints
    internal_count: Ints

    @model_validator(mode="after")
    def _is_a_tree(self) -> Tree:
        splits = len(self.split_feature)
        lengths = {len(getattr(self, name)) for name in ("threshold", "decision_type", "left_child", "right_child",
                                                          "internal_count")}
        if not splits or lengths != {splits} or {len(self.leaf_value), len(self.leaf_count)} != {splits + 1}:
            raise ValueError("a tree's lists do not fit together")
        children = sorted(self.left_child + self.right_child)
        if children != [*range(-splits - 1, 0), *range(1, splits)]:
            raise ValueError("a tree's splits and leaves are not each the child of one split")
        if any(0 <= child <= parent for side in (self.left_child, self.right_child)
               for parent, child in enumerate(side)):
            raise ValueError("a tree's split lies above its own parent")
        if not all(map(math.isfinite, self.threshold + self.leaf_value)):
            raise ValueError("a tree holds a number that is not finite")
        if not DECISIONS.issuperset(self.decision_type) or min(self.split_feature) < 0:
            raise ValueError("a tree holds an unknown kind of split")
        if min(self.leaf_count + self.internal_count) < 1 or max(self.internal_count) > 2**31 - 1:
            raise ValueError("a tree holds an impossible count")
        return self

    def text(self, number: int) -> str:
        """Return LightGBM's text of this tree."""
        lists = {name: " ".join(repr(value) for value in getattr(self, name)) for name in FIELDS}
        return "\n".join([f"Tree={number}", f"num_leaves={len(self.leaf_value)}", "num_cat=0",
                          *(f"{name}={values}" for name, values in lists.items()), "is_linear=0",
                          "shrinkage=1", "", ""])


FIELDS = ("split_feature", "threshold", "decision_type", "left_child", "right_child", "leaf_value", "leaf_count",
          "internal_count")


def lightgbm() -> Any:
    """Return the library; raise MemlabError if it is not installed."""
    try:
        import lightgbm as library
    except ImportError as error:
        raise MemlabError("learned fusion needs LightGBM, which is not installed", where="learn/ranker",
                          fix="pip install 'memlab[learn]'") from error
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


@functools.lru_cache(maxsize=32)
def booster(trees: tuple[Tree, ...], features: int) -> Any:
    """Return a LightGBM booster of these trees over so many features."""
    names = " ".join(f"f{i}" for i in range(features))
    texts = [tree.text(number) for number, tree in enumerate(trees)]
    header = ["tree", "version=v4", "num_class=1", "num_tree_per_iteration=1", "label_index=0",
              f"max_feature_idx={features - 1}", "objective=lambdarank", f"feature_names={names}",
              f"feature_infos={' '.join(['[-1e308:1e308]'] * features)}",
              f"tree_sizes={' '.join(str(len(text.encode())) for text in texts)}", "", ""]
    return lightgbm().Booster(model_str="\n".join(header) + "".join(texts) + "end of trees\n")


def predict(trees: tuple[Tree, ...], x: np.ndarray, contributions: bool = False) -> np.ndarray:
    """Return the sum of the trees' leaves for each row of ``x`` (n, features), shape (n,).

    ``contributions`` returns the share of each feature and, last, the mean (n, features + 1): the exact Shapley values
    of trees (Lundberg et al., Nature Machine Intelligence 2020), as LightGBM computes them.
    """
    if not trees:
        return np.zeros((len(x), x.shape[1] + 1) if contributions else len(x))
    model = booster(trees, x.shape[1])
    with ThreadPoolExecutor(usable_cores()) as pool:  # LightGBM computes outside Python's lock
        return np.concatenate(list(pool.map(
            lambda rows: model.predict(rows, pred_contrib=contributions, num_threads=1),
            np.array_split(x, min(usable_cores(), len(x)) or 1))))
