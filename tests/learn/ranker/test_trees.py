from __future__ import annotations

import builtins
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from memlab.errors import MemlabError
from memlab.learn.ranker.trees import Tree, lightgbm, predict, trees_of

TREE: dict[str, Any] = {
    "split_feature": (1, 0), "threshold": (0.5, 2.0), "decision_type": (2, 8), "left_child": (-1, -2),
    "right_child": (1, -3), "leaf_value": (1.0, 10.0, 100.0), "leaf_count": (2, 3, 5), "internal_count": (10, 8)}


def test_a_row_falls_into_its_leaf_and_missing_values_go_their_way() -> None:
    rows = np.array([[0.0, 0.5], [2.0, 0.6], [2.1, 0.6], [np.nan, 0.6]])
    trees = (Tree(**TREE), Tree(**{**TREE, "leaf_value": (0.25, 0.5, 0.75)}))
    assert predict(trees, rows).tolist() == [1.25, 10.5, 100.75, 100.75]


def test_contributions_sum_to_the_score_and_without_trees_all_is_zero() -> None:
    rows = np.random.default_rng(0).uniform(0, 3, (20, 2))
    shares = predict((Tree(**TREE),), rows, contributions=True)
    assert shares.shape == (20, 3)
    assert np.allclose(shares.sum(axis=1), predict((Tree(**TREE),), rows))
    assert np.allclose(shares[:, 2], 1 * .2 + 10 * .3 + 100 * .5)  # the mean leaf, by counts
    assert not predict((), rows).any()
    assert predict((), rows, contributions=True).shape == (20, 3)


@pytest.mark.parametrize("damage", [
    {"left_child": (1, -2)}, {"left_child": (0, -2)}, {"right_child": (7, -3)}, {"right_child": (1, -9)},
    {"left_child": (-1, -1)}, {"leaf_value": (1.0, 2.0)}, {"leaf_value": (1.0, 2.0, float("nan"))},
    {"threshold": (float("inf"), 1.0)}, {"split_feature": (-1, 0)}, {"decision_type": (1, 2)},
    {"leaf_count": (0, 3, 5)}, {"split_feature": (1,)}, {"internal_count": (10, 2**40)},
    {name: () for name in TREE},
])
def test_what_is_no_tree_is_refused(damage: dict[str, Any]) -> None:
    Tree(**TREE)
    with pytest.raises(ValidationError):
        Tree(**{**TREE, **damage})


def test_trees_of_lightgbm_give_its_own_scores() -> None:
    library = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(3)
    x = rng.normal(size=(600, 5))
    x[rng.uniform(size=x.shape) < .1] = np.nan
    y = (np.nan_to_num(x[:, 0]) + np.nan_to_num(x[:, 1]) ** 2 > 1).astype(int)
    options = {"objective": "lambdarank", "verbosity": -1, "num_threads": 1}
    fitted = library.train(options, library.Dataset(x, y, group=[20] * 30), 10)
    trees = trees_of(fitted.model_to_string())
    assert np.allclose(predict(trees, x), fitted.predict(x), atol=1e-12)
    assert Tree(**asdict(trees[0])) == trees[0]


TEXT = "tree\n\nTree=0\nnum_leaves=3\n" + "".join(
    f"{name}={' '.join(map(str, values))}\n" for name, values in TREE.items())


def test_text_of_another_form_is_refused() -> None:
    assert trees_of(TEXT) == (Tree(**TREE),)
    for old, new in (("num_leaves=3", "num_leaves="), ("num_leaves=3", ""), ("0.5 2.0", "0.5 a"), ("-1 -2", "-1 x"),
                     ("leaf_count=2 3 5", "leaf_count=2 3"), ("threshold", "thresh"), ("1 0", "1 " + "9" * 5000)):
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
