from __future__ import annotations

import builtins
from typing import Any

import pytest
from pydantic import ValidationError

from memlab.errors import MemlabError
from memlab.learn.ranker.trees import Tree, lightgbm, trees_of

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
