"""Boosted trees as plain arrays: checked on construction, written as JSON, read from LightGBM's text of a fit.

LightGBM (Ke et al., NeurIPS 2017), which is the extra ``learn``, fits the trees; ``BoostedTrees`` evaluates them.
LightGBM trusts the text of a model: a wrong index reads foreign memory. So no file is handed to it.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Any

from pydantic import Field, model_validator

from memlab.errors import MemlabError
from memlab.stage import stage

Ints = Annotated[tuple[int, ...], Field(strict=False, max_length=1024)]
Numbers = Annotated[tuple[float, ...], Field(strict=False, max_length=1024)]
DECISIONS = frozenset({0, 2, 4, 6, 8, 10})
"""Kinds of numerical splits in LightGBM's text: 2 sends a missing value left; 4 and 8 say what is missing."""

LARGEST = 1e100
"""Largest value of a leaf: sums of leaves stay finite."""


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


FIELDS = tuple(field.name for field in dataclasses.fields(Tree))


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
