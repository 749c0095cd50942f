"""A result is kept on disk and found again while all that it follows from is equal; else it is made again."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memlab.support import disk_cache as module
from memlab.support.disk_cache import load_or_make, source_files


class Maker:
    """Makes a result, and counts how often."""

    def __init__(self, result: Any) -> None:
        self.result, self.made = result, 0

    def __call__(self) -> Any:
        self.made += 1
        return self.result


def replace_by(path: Path, make: Callable[[Path], None]) -> None:
    path.unlink()
    make(path)


def files(home: Path) -> list[Path]:
    return sorted((home / "cache").glob("*"))


def test_a_result_is_made_once_for_equal_inputs(memlab_home: Path) -> None:
    one, other = Maker({"k": [1, 2.5, None, "ä", True]}), Maker("other")
    results = [load_or_make(["a", 1], one), load_or_make(["a", 1], one), load_or_make(["a", 2], other)]
    assert results == [one.result, one.result, "other"]
    assert (one.made, other.made, len(files(memlab_home))) == (1, 1, 2)


@pytest.mark.parametrize("damage", [
    lambda path: path.write_bytes(path.read_bytes()[:-3]), lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(path.read_bytes().replace(b"value", b"valve")),
    lambda path: path.write_text('{"result": "another"}\n'), lambda path: replace_by(path, os.mkdir),
    lambda path: replace_by(path, os.mkfifo)])
def test_a_damaged_file_is_no_result(damage: Callable[[Path], object], memlab_home: Path) -> None:
    one = Maker("value")
    load_or_make("a", one)
    damage(files(memlab_home)[0])
    assert load_or_make("a", one) == load_or_make("a", one) == "value"
    assert one.made in (2, 3)  # a folder in its place stays


@pytest.mark.parametrize("result", [{1: "a"}, ("a",), {"api_key": "open-sesame"}, "https://me:pw@host/v1", {"a"},
                                    float("nan"), object()])
def test_keys_and_what_json_changes_are_not_kept(result: Any, memlab_home: Path) -> None:
    one = Maker(result)
    assert load_or_make("a", one) is load_or_make("a", one) is result
    assert (one.made, files(memlab_home)) == (2, [])


def test_other_source_of_memlab_is_another_result(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Maker("value")
    load_or_make("a", one)
    monkeypatch.setattr(module, "own_digest", lambda: "other")
    load_or_make("a", one)
    assert one.made == 2


def test_without_a_home_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    for home in (str(tmp_path / "file"), "~nobody-has-this-name", "a" * 300):
        monkeypatch.setenv("MEMLAB_HOME", home)
        assert load_or_make("a", Maker("value")) == "value"


def test_the_oldest_make_room(memlab_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 4)
    makers = [Maker(i) for i in range(5)]
    for i, maker in enumerate(makers):
        load_or_make(i, maker)
        for path in files(memlab_home):
            os.utime(path, (path.stat().st_mtime - 10,) * 2)
    assert len(files(memlab_home)) == 3
    assert [load_or_make(i, makers[i]) for i in (4, 3, 2, 1)] == [4, 3, 2, 1]
    assert [maker.made for maker in makers] == [1, 2, 1, 1, 1]


def test_the_files_of_a_package_by_content(tmp_path: Path) -> None:
    for name in ("a.py", "b/words.txt", "b/__pycache__/c.pyc", ".hidden"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1")
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere")
    found = source_files(tmp_path)
    assert [*found] == ["a.py", "b/words.txt"]
    assert found["a.py"] == "x = 1"
