"""YAML of limited size without aliases and tags."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from memlab.runtime import plain_yaml

BOMB = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))


def test_values_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes("\ufeffa: [1, x]\nb: é".encode())
    assert plain_yaml.read(tmp_path / "a.yaml") == {"a": [1, "x"], "b": "é"}


def test_aliases_are_refused_before_they_unfold() -> None:
    with pytest.raises(ValueError, match="aliases are not allowed"):
        plain_yaml.loads(BOMB)


def test_size_is_limited(tmp_path: Path) -> None:
    assert plain_yaml.loads("a: 1\n" + " " * (plain_yaml.LARGEST - 5)) == {"a": 1}
    (tmp_path / "a.yaml").write_text("a: 1\n" + " " * plain_yaml.LARGEST)
    with pytest.raises(ValueError, match="more than 1,048,576 characters"):
        plain_yaml.read(tmp_path / "a.yaml")


def test_tags_are_refused() -> None:
    with pytest.raises(yaml.YAMLError):
        plain_yaml.loads("!!python/object/apply:os.system [x]")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.yaml")
    with pytest.raises(OSError, match="no plain file"):
        plain_yaml.read(tmp_path / "a.yaml")
