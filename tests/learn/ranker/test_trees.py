from __future__ import annotations

import builtins
from functools import reduce
from itertools import combinations
from math import comb, factorial
from operator import add
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import memlab.learn.ranker.trees as module
from memlab.errors import MemlabError
from memlab.learn.ranker.trees import BoostedTrees, Tree, boosted_trees, lightgbm, trees_of

TREE: dict[str, Any] = {
    "split_feature": (1, 0), "threshold": (0.5, 2.0), "decision_type": (2, 8), "left_child": (-1, -2),
    "right_child": (1, -3), "leaf_value": (1.0, 10.0, 100.0)}


@pytest.mark.parametrize("damage", [
    {"left_child": (1, -2)}, {"left_child": (0, -2)}, {"right_child": (7, -3)}, {"right_child": (1, -9)},
    {"left_child": (-1, -1)}, {"leaf_value": (1.0, 2.0)}, {"leaf_value": (1.0, 2.0, float("nan"))},
    {"threshold": (float("inf"), 1.0)}, {"split_feature": (-1, 0)}, {"decision_type": (1, 2)},
    {"split_feature": (1,)}, {"leaf_value": (1.0, 2.0, 1.7e308)}, {"leaf_value": (1.0,) * 2000},
    {name: () for name in TREE},
])
def test_what_is_no_tree_is_refused(damage: dict[str, Any]) -> None:
    Tree(**TREE)
    with pytest.raises(ValidationError):
        Tree(**{**TREE, **damage})


TEXT = "tree\n\nTree=0\nnum_leaves=3\n" + "".join(
    f"{name}={' '.join(map(str, values))}\n" for name, values in TREE.items())


def test_text_of_another_form_is_refused() -> None:
    assert trees_of(TEXT) == (Tree(**TREE),)
    for old, new in (("num_leaves=3", "num_leaves="), ("num_leaves=3", ""), ("0.5 2.0", "0.5 a"), ("-1 -2", "-1 x"),
                     ("1.0 10.0 100.0", "1.0 10.0"), ("threshold", "thresh"), ("1 0", "1 " + "9" * 5000)):
        with pytest.raises(MemlabError, match="LightGBM's text of a model cannot be read"):
            trees_of(TEXT.replace(old, new, 1) )


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "lightgbm":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MemlabError, match=r"memlab\[learn\]"):
        lightgbm()


TREE: dict[str, Any] = {
    "split_feature": (1, 0), "threshold": (0.5, 2.0), "decision_type": (2, 8), "left_child": (-1, -2),
    "right_child": (1, -3), "leaf_value": (1.0, 10.0, 100.0)}


def columns(rows: np.ndarray) -> list[np.ndarray]:
    return list(np.ascontiguousarray(rows.T, dtype=np.float32))


def scores(trees: tuple[Tree, ...], rows: np.ndarray) -> np.ndarray:
    return boosted_trees(trees).scores(columns(rows), len(rows))


def leads(trees: tuple[Tree, ...], ahead: np.ndarray, behind: np.ndarray) -> np.ndarray:
    return boosted_trees(trees).leads(columns(ahead), columns(behind), len(ahead))


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
    return rng.choice([-3.0, -1.5, 0.0, 0.5, 1.0, 2.0, 1e-40, np.nan], size=(count, features))


def walk(tree: Tree, row: np.ndarray) -> float:
    """Return a row's leaf by the rules of LightGBM's ``NumericalDecision``."""
    node = 0
    while node >= 0:
        value, kind = np.float64(np.float32(row[tree.split_feature[node]])), tree.decision_type[node]
        missing = np.isnan(value) and bool(kind & 8)
        value = 0.0 if np.isnan(value) else value
        missing |= bool(kind & 4) and abs(value) <= 1e-35
        to_left = bool(kind & 2) if missing else value <= tree.threshold[node]
        node = tree.left_child[node] if to_left else tree.right_child[node]
    return tree.leaf_value[-1 - node]


def test_a_row_falls_into_its_leaf_and_missing_values_go_their_way() -> None:
    rows = np.array([[0.0, 0.5], [2.0, 0.6], [2.1, 0.6], [np.nan, 0.6]])
    trees = (Tree(**TREE), Tree(**{**TREE, "leaf_value": (0.25, 0.5, 0.75)}))
    assert scores(trees, rows).tolist() == [1.25, 10.5, 100.75, 100.75]


def test_without_trees_or_rows_all_is_zero() -> None:
    rows = np.ones((20, 2))
    assert scores((), rows).tolist() == [0.0] * 20
    assert leads((), rows, rows).tolist() == [[0.0, 0.0]] * 20
    assert scores((Tree(**TREE),), rows[:0]).shape == (0,)
    assert leads((Tree(**TREE),), rows[:0], rows[:0]).shape == (0, 2)


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_each_row_has_the_leaves_that_a_walk_down_the_trees_finds(seed: int, splits: int) -> None:
    rng = np.random.default_rng(seed)
    trees = tuple(random_tree(rng, splits, 5) for _ in range(3))
    rows = random_rows(rng, 20, 5)
    # one after the other: from Python 3.12 on `sum` corrects the rounding of floats
    assert scores(trees, rows).tolist() == [reduce(add, (walk(tree, row) for tree in trees), 0.0) for row in rows]


@pytest.mark.parametrize("splits", [254, 255, 256, 257, 700])
def test_leaves_of_large_trees_are_counted_on(splits: int) -> None:
    rng = np.random.default_rng(splits)
    tree = random_tree(rng, splits, 50)
    rows = random_rows(rng, 300, 50)
    assert scores((tree,), rows).tolist() == [walk(tree, row) for row in rows]
    chain = Tree(split_feature=(0,) * splits, threshold=tuple(map(float, reversed(range(splits)))),
                 decision_type=(2,) * splits, left_child=(*range(1, splits), -1),
                 right_child=tuple(-2 - i for i in range(splits)), leaf_value=tuple(map(float, range(splits + 1))))
    rows = np.arange(splits + 1.0)[:, None]
    assert scores((chain,), rows).tolist() == [walk(chain, row) for row in rows] == [0.0, *range(splits, 0, -1)]


@pytest.mark.parametrize("leaves", [2, 8, 9, 15, 40])
@pytest.mark.parametrize("missing", [{}, {"use_missing": False}, {"zero_as_missing": True}])
def test_scores_are_those_of_lightgbm_bit_for_bit(leaves: int, missing: dict[str, bool]) -> None:
    library = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(leaves)
    x = rng.normal(size=(3000, 6)).astype(np.float32)
    x[rng.uniform(size=x.shape) < .1] = np.nan
    x[rng.uniform(size=x.shape) < .1] = 0
    y = (np.nan_to_num(x[:, 0]) + np.nan_to_num(x[:, 1]) ** 2 + rng.normal(size=3000) > 1).astype(int)
    options = {"objective": "lambdarank", "num_leaves": leaves, "verbosity": -1, "num_threads": 1, **missing}
    fitted = library.train(options, library.Dataset(x, y, group=[20] * 150), 15)
    trees = trees_of(fitted.model_to_string())
    assert {len(tree.leaf_value) for tree in trees} == {leaves}
    assert scores(trees, x).tolist() == fitted.predict(x, num_threads=1).tolist()


@given(st.floats(-1e300, 1e300), st.floats(width=32, allow_nan=False))
def test_a_threshold_in_float32_parts_the_float32_numbers_as_before(threshold: float, value: float) -> None:
    for near in (np.float32(value), *near_float32(threshold)):
        assert (near > module._rounded_down(threshold)) == (float(near) > threshold)


def near_float32(value: float) -> list[np.float32]:
    with np.errstate(over="ignore"):
        own = np.float32(value)
        return [np.nextafter(own, np.float32(-np.inf)), own, np.nextafter(own, np.float32(np.inf))]


def test_rows_are_evaluated_in_pieces_and_come_back_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    trees = tuple(random_tree(rng, 12, 4) for _ in range(4))
    ahead, behind = random_rows(rng, 50, 4), random_rows(rng, 50, 4)
    whole = BoostedTrees(trees)
    expected = whole.scores(columns(ahead), 50), whole.leads(columns(ahead), columns(behind), 50)
    monkeypatch.setattr(module, "ROWS", 7)
    assert (whole.scores(columns(ahead), 50) == expected[0]).all()
    assert (whole.leads(columns(ahead), columns(behind), 50) == expected[1]).all()
    monkeypatch.setattr(module, "CELLS", 1)  # one row at a time, however many splits there are
    assert (whole.scores(columns(ahead), 50) == expected[0]).all()
    assert (whole.leads(columns(ahead), columns(behind), 50) == expected[1]).all()


@given(st.integers(0, 2**32), st.integers(1, 20))
def test_a_share_of_a_lead_is_the_shapley_value_over_all_coalitions(seed: int, splits: int) -> None:
    rng = np.random.default_rng(seed)
    trees = tuple(random_tree(rng, splits, 4) for _ in range(2))
    ahead, behind = random_rows(rng, 2, 4), random_rows(rng, 2, 4)
    shares = leads(trees, ahead, behind)
    for row in range(2):
        for feature in range(4):
            others = [other for other in range(4) if other != feature]
            expected = 0.0
            for size in range(4):
                for coalition in combinations(others, size):
                    without, joined = behind[row].copy(), behind[row].copy()
                    without[list(coalition)] = joined[list(coalition)] = ahead[row, list(coalition)]
                    joined[feature] = ahead[row, feature]
                    gain = sum(walk(tree, joined) - walk(tree, without) for tree in trees)
                    expected += gain / (4 * comb(3, size))
            assert shares[row, feature] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("step", [1, 3])
def test_leads_are_made_in_pieces_that_fit_into_memory(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece holds the comparisons of all splits with the rows of both sides."""
    splits = 200
    trees = tuple(Tree(**{**TREE, "threshold": (float(i), float(-1 - i))}) for i in range(splits // 2))
    sizes: list[int] = []
    right = BoostedTrees._right
    monkeypatch.setattr(BoostedTrees, "_right", lambda self, rows, memory: sizes.append(memory.size) or right(
        self, rows, memory))
    monkeypatch.setattr(module, "CELLS", 2 * splits * step)
    rows = random_rows(np.random.default_rng(0), 10, 2)
    leads(trees, rows, rows[::-1])
    assert max(sizes) == splits * step


def test_the_weights_of_coalitions_are_those_of_the_formula() -> None:
    table = module._weights(40)
    for a, b in ((1, 0), (1, 1), (3, 2), (7, 12), (40, 40)):
        assert table[a, b] == pytest.approx(factorial(a - 1) * factorial(b) / factorial(a + b), rel=1e-12)
    assert not table[0].any()


def test_scores_are_the_same_without_numpys_count_of_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    trees = tuple(random_tree(rng, 30, 4) for _ in range(4))
    rows = random_rows(rng, 60, 4)
    expected = scores(trees, rows).tolist()
    monkeypatch.setattr(module, "count_ones", module.ONES.take)  # as with NumPy 1
    assert scores(trees, rows).tolist() == expected


def test_shares_add_up_and_equal_values_have_none() -> None:
    rng = np.random.default_rng(2)
    trees = tuple(random_tree(rng, 30, 6) for _ in range(10))
    ahead, behind = random_rows(rng, 100, 6), random_rows(rng, 100, 6)
    shares = leads(trees, ahead, behind)
    assert shares.sum(axis=1) == pytest.approx(scores(trees, ahead) - scores(trees, behind))
    same = (ahead == behind) | (np.isnan(ahead) & np.isnan(behind))
    assert same.any()
    assert not shares[same].any()
    assert (leads(trees, behind, ahead) == pytest.approx(-shares))
