"""Fields and metadata of sessions: kept, listed, copied, exported, read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memlab.data.custom import Custom
from memlab.data.fields import Plain
from memlab.errors import MemlabError
from memlab.live.__main__ import main
from memlab.memory import Memory, Session
from tests.small import lexical

NAMES = {"user": "ann", "agent": "guide", "room": "kitchen", "source": "slack", "kind": "chat"}
METADATA: dict[str, Plain] = {"project": "boat", "page": 3, "share": 0.5, "open": True, "owner": None}
FULL = Session("2023-05-20", [("user", "I bought a boat."), ("assistant", "Lovely!")], "boat", **NAMES,
               metadata=METADATA)
BARE = Session("2023-05-21", [("user", "I adopted a cat.")], "cat")


def test_fields_are_kept_listed_and_part_of_what_a_name_stands_for(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add_many([FULL, BARE])
    with Memory(tmp_path, lexical()) as memory:
        assert memory.get("boat") == FULL
        assert memory.get("boat").metadata == METADATA
        assert memory.get("cat").metadata == {}
        full, bare = memory.list().select(*NAMES, "metadata").rows(named=True)
        assert {name: full[name] for name in NAMES} == NAMES
        assert json.loads(full["metadata"]) == METADATA
        assert set(bare.values()) == {None}
        assert memory.add(FULL) == 0
        with pytest.raises(MemlabError, match="with other words or fields"):
            memory.add(Session(FULL.said_on, FULL.turns, "boat", user="ben"))
        memory.forget("boat", [0])
        assert memory.get("boat").fields() == NAMES
        assert memory.list()["user"].to_list() == ["ann", None]
        memory.forget("boat")
    assert not any(b"kitchen" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_messages_take_the_fields_of_their_session(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add([{"role": "user", "content": "Hi"}], "2023-05-20", user="ann", metadata={"page": 3})
        assert memory.get(0) == Session("2023-05-20", [("user", "Hi")], user="ann", metadata={"page": 3})


def test_fields_are_copied_exported_and_imported(tmp_path: Path) -> None:
    with Memory(tmp_path / "ann", lexical()) as memory:
        memory.add_many([FULL, BARE])
        memory.backup(tmp_path / "copy")
        listed = memory.list()
    with Memory(tmp_path / "copy", lexical()) as memory:
        assert memory.list().equals(listed)
    (tmp_path / "chats").mkdir()
    assert main(["export", f"memory={tmp_path / 'ann'}", f"out={tmp_path / 'chats' / 'sessions.jsonl'}"]) == 0
    assert Custom(path=tmp_path / "chats").load()["sessions"].height == 2
    with Memory.from_folder(tmp_path / "chats", tmp_path / "again", lexical()) as memory:
        assert memory.list().equals(listed)
        assert [memory.get(name) for name in ("boat", "cat")] == [FULL, BARE]


@pytest.mark.parametrize("wrong", [{"user": 5}, {"room": ["a"]}, {"metadata": ["a"]}, {"metadata": {1: "a"}},
                                   {"metadata": {"a": {1, 2}}}, {"metadata": {"a": [b"b"]}},
                                   {"metadata": {"a": 2**63}}, {"metadata": {"a": [{"b": 10**5000}]}},
                                   {"metadata": {"a": {2: "b"}}},
                                   {"metadata": {"a": float("nan")}}])
def test_fields_that_are_no_names_or_plain_values_are_refused(wrong: Any) -> None:
    with pytest.raises(MemlabError, match=f"session, {next(iter(wrong))}: "):
        Session("2023-05-20", [], **wrong)


def test_half_a_surrogate_in_a_field_breaks_nothing(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(Session("2023-05-20", [("user", "Hi")], user="\ud800", metadata={"\ud800": "\ud800"}))
        assert memory.list().select("user", "metadata").rows() == [("?", '{"?": "?"}')]
