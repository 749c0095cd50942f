"""Foreign files: plain ones of limited size, JSON and YAML that Python can hold, whole numbers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from memlab.support.errors import MemlabError
from memlab.support.foreign import MOST_OF_YAML, load_json, load_yaml, read_bytes, read_json, read_yaml, whole_number

BOMB = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))


def test_values_of_files(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes("\ufeffa: [1, x]\nb: é".encode())
    assert read_yaml(tmp_path / "a.yaml") == {"a": [1, "x"], "b": "é"}
    (tmp_path / "a.json").write_text('{"a": [1, "x"]}')
    assert read_json(tmp_path / "a.json") == {"a": [1, "x"]}


@pytest.mark.parametrize(("text", "problem"), [
    (BOMB, "aliases are not allowed"), ("[" * 101 + "]" * 101, "nested more than 100 levels deep"),
    ("a: 1\n" + " " * MOST_OF_YAML, "more than 1,048,576 characters")])
def test_yaml_past_a_limit_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        load_yaml(text)


def test_yaml_within_the_limits_has_no_tags() -> None:
    assert load_yaml("a: 1\n" + " " * (MOST_OF_YAML - 5)) == {"a": 1}
    assert load_yaml("[" * 100 + "]" * 100)
    with pytest.raises(yaml.YAMLError):
        load_yaml("!!python/object/apply:os.system [x]")


@pytest.mark.parametrize("text", ["[", "", "[" * 200_000, '{"a":' * 200_000, "9" * 5000])
def test_what_is_no_json_or_too_deep_is_one_kind_of_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"Expecting|too deeply|Exceeds the limit"):
        load_json(text)


def test_files_are_plain_and_of_limited_size(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.yaml")
    with pytest.raises(OSError, match="no plain file"):
        read_yaml(tmp_path / "a.yaml")
    (tmp_path / "b").write_bytes(b"12345")
    assert read_bytes(tmp_path / "b", 5) == b"12345"
    with pytest.raises(OSError, match="more than 0 MB"):
        read_bytes(tmp_path / "b", 4)
    with pytest.raises(MemlabError, match="mine"):
        read_bytes(tmp_path / "b", 4, MemlabError("mine"))
    (tmp_path / "c.json").write_text("[]")
    with pytest.raises(ValueError, match="no JSON object"):
        read_json(tmp_path / "c.json")


@pytest.mark.parametrize("text", ["", " 1", "+1", "1.0", "1_0", "\u0663", "²", "x", "9" * 19, "9" * 6000])
def test_what_is_no_whole_number(text: str) -> None:
    assert whole_number(text) is None
    assert whole_number("0" + "9" * 17) == 10**17 - 1
