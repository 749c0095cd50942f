"""Fields and metadata of sessions: kept, listed, copied, exported, read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memlab.data.fields import Plain
from memlab.memory.memory import Memory, Session
from memlab.support.errors import MemlabError
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
