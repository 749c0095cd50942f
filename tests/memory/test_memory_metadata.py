"""Metadata of a live memory's sessions: any JSON, as it was, and filters by the values of lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memlab.memory.memory import Memory, Session
from memlab.support.errors import MemlabError
from tests.small import lexical

CONTENT = {"action": "REPLY", "url": "https://example.org/a",
           "attachments": ["a.png", {"name": "b.pdf", "pages": [1, 2]}],
           "tags": ["boat", "house", 3, True, None], "empty": [], "v1.5": {"b": True},
           "nested": {"deep": {"deeper": [[1.5]]}}}


def test_metadata_are_any_json_and_stay_as_they_are(tmp_path: Path) -> None:
    with Memory(tmp_path / "ann", lexical()) as memory:
        memory.add([{"role": "user", "content": "My boat is red."}], "2023-05-20", metadata=CONTENT)
        memory.export(tmp_path / "ann.jsonl")
    with Memory(tmp_path / "ann", lexical()) as memory, Memory(tmp_path / "ben", lexical()) as other:
        other.import_sessions(tmp_path / "ann.jsonl")
        for one in (memory, other):
            assert repr(dict(one.get(0).metadata)) == repr(CONTENT)


@pytest.mark.parametrize(("where", "fits"), [
    ({"metadata.tags": ["tree", 3]}, True), ({"metadata.tags": True}, True), ({"metadata.tags": 1}, False),
    ({"metadata.tags": None}, True), ({"metadata.empty": None}, False), ({"metadata.nested": None}, False),
    ({"metadata.other": None}, True), ({"metadata.nested.deep.other": None}, True),
    ({"metadata.attachments.name": "b.pdf"}, True), ({"metadata.attachments.pages": [2, 5]}, True),
    ({"metadata.v1.5.b": True}, True), ({"metadata.v1.5.b": 1}, False)])
def test_a_list_fits_by_one_of_its_values(tmp_path: Path, where: dict[str, Any], fits: bool) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(Session("2023-05-20", [("user", "My boat is red.")], metadata=CONTENT))
        assert memory.count(where) == memory.search("boat", where=where).height == fits


def test_metadata_without_end_are_refused(tmp_path: Path) -> None:
    deep: list[Any] = []
    for _ in range(30):
        deep = [deep]
    with Memory(tmp_path) as memory:
        with pytest.raises(MemlabError, match="more than 20 lists and objects within each other"):
            memory.add([{"role": "user", "content": "Hi"}], metadata={"a": deep})
        assert memory.count() == 0
