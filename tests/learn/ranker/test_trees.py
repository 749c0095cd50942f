from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from memlab.learn.ranker import trees as module
from memlab.learn.ranker.trees import Tree, boosted_trees, trees_of

TREE: dict[str, Any] = {
    "split_feature": (1, 0), "threshold": (0.5, 2.0), "decision_type": (2, 8), "left_child": (-1, -2),
    "right_child": (1, -3), "leaf_value": (1.0, 10.0, 100.0)}


@pytest.mark.parametrize("damage", [
    {"left_child": (1, -2)}, {"left_child": (0, -2)}, {"right_child": (7, -3)}, {"left_child": (-1, -1)},
    {"leaf_value": (1.0, 2.0)}, {"leaf_value": (1.0, 2.0, float("nan"))}, {"threshold": (float("inf"), 1.0)},
    {"split_feature": (-1, 0)}, {"decision_type": (1, 2)}, {"split_feature": (1,)}, {"leaf_value": (1.0, 2.0, 1.7e308)},
    {name: () for name in TREE}, {"threshold": "1 2"}, {"leaf_count": (1,)}])
def test_what_is_no_tree_is_refused(damage: dict[str, Any]) -> None:
    Tree(**TREE)
    with pytest.raises(ValidationError):
        Tree(**{**TREE, **damage})


def random_tree(rng: np.random.Generator, splits: int, features: int) -> Tree:
    """Grow a tree by splitting one of its leaves at a time, as LightGBM does."""
    left, right, leaves = [-1], [-2], [(0, "left"), (0, "right")]
    for split in range(1, splits):
        at = int(rng.integers(len(leaves)))
        parent, side = leaves[at]
        (left if side == "left" else right)[parent] = split
        left.append(-1 - at)
        right.append(-1 - len(leaves))
        leaves[at] = (split, "left")
        leaves.append((split, "right"))
    return Tree(split_feature=tuple(rng.integers(features, size=splits).tolist()),
                threshold=tuple(rng.integers(-2, 3, size=splits).astype(float).tolist()),
                decision_type=tuple(rng.choice([0, 2, 4, 6, 8, 10], size=splits).tolist()),
                left_child=tuple(left), right_child=tuple(right),
                leaf_value=tuple(rng.normal(size=splits + 1).tolist()))


def random_rows(rng: np.random.Generator, count: int, features: int) -> np.ndarray:
    values = [-3.0, -1.5, 0.0, 0.5, 1.0, 2.0, 1e-40, np.nan]
    return rng.choice(values, size=(count, features)).astype(np.float32)


def walk(tree: Tree, row: np.ndarray) -> list[int]:
    """Return a row's nodes by the rules of LightGBM's ``NumericalDecision``; the last is a leaf, below 0."""
    nodes = [0]
    while nodes[-1] >= 0:
        node = nodes[-1]
        value, kind = float(row[tree.split_feature[node]]), tree.decision_type[node]
        missing = np.isnan(value) and bool(kind & 8)
        value = 0.0 if np.isnan(value) else value
        missing |= bool(kind & 4) and abs(value) <= 1e-35
        to_left = bool(kind & 2) if missing else value <= tree.threshold[node]
        nodes.append(tree.left_child[node] if to_left else tree.right_child[node])
    return nodes


@pytest.mark.parametrize("leaves", [2, 15, 300])
@pytest.mark.parametrize("missing", [{}, {"use_missing": False}, {"zero_as_missing": True}])
def test_scores_are_those_of_lightgbm_bit_for_bit(leaves: int, missing: dict[str, bool],
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    library = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(leaves)
    x = rng.normal(size=(9000, 6)).astype(np.float32)
    x[rng.uniform(size=x.shape) < .1] = np.nan
    x[rng.uniform(size=x.shape) < .1] = 0
    y = (np.nan_to_num(x[:, 0]) + np.nan_to_num(x[:, 1]) ** 2 + rng.normal(size=9000) > 1).astype(int)
    options = {"objective": "lambdarank", "num_leaves": leaves, "min_data_in_leaf": 5, "verbosity": -1,
               "num_threads": 1, **missing}
    fitted = library.train(options, library.Dataset(x, y, group=[20] * 450), 15)
    trees = trees_of(fitted.model_to_string())
    assert {len(tree.leaf_value) for tree in trees} == {leaves}
    monkeypatch.setattr(module, "ROWS", 700)  # pieces come back in their order
    assert boosted_trees(trees).scores(x).tolist() == fitted.predict(x, num_threads=1).tolist()
    assert boosted_trees(trees).scores(x[:0]).shape == (0,)
    assert not boosted_trees(()).scores(x).any()
