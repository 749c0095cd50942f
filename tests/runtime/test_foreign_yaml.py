"""YAML of limited size without aliases and tags."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from memlab.runtime.foreign import MOST_OF_YAML, load_yaml, read_yaml

BOMB = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))


def test_values_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes("\ufeffa: [1, x]\nb: é".encode())
    assert read_yaml(tmp_path / "a.yaml") == {"a": [1, "x"], "b": "é"}


def test_aliases_are_refused_before_they_unfold() -> None:
    with pytest.raises(ValueError, match="aliases are not allowed"):
        load_yaml(BOMB)


def test_size_is_limited(tmp_path: Path) -> None:
    assert load_yaml("a: 1\n" + " " * (MOST_OF_YAML - 5)) == {"a": 1}
    (tmp_path / "a.yaml").write_text("a: 1\n" + " " * MOST_OF_YAML)
    with pytest.raises(ValueError, match="more than 1,048,576 characters"):
        read_yaml(tmp_path / "a.yaml")


def test_tags_are_refused() -> None:
    with pytest.raises(yaml.YAMLError):
        load_yaml("!!python/object/apply:os.system [x]")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.yaml")
    with pytest.raises(OSError, match="no plain file"):
        read_yaml(tmp_path / "a.yaml")


def test_lists_inside_each_other_are_counted() -> None:
    assert load_yaml("[" * 100 + "]" * 100)
    with pytest.raises(ValueError, match="nested more than 100 levels deep"):
        load_yaml("[" * 101 + "]" * 101)
