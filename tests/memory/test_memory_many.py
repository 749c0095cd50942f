"""Many sessions added to a live memory at once: as one by one, all or none, also from a folder of conversations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

from memlab.memory.memory import Memory, Session
from memlab.models.protocols import Floats, Ints, Role
from memlab.pipeline.pipeline import Pipeline
from memlab.stages.search.dense import Dense
from memlab.support.errors import Faults, MemlabError
from tests.small import lexical
from tests.stages.search.world import WordEmbedder

SESSIONS = [Session(f"2023-05-{20 - n:02}", [("user", f"I saw {animal} number {n}."), ("assistant", "Lovely!")],
                    None if n % 3 else f"talk {n}")
            for n, animal in enumerate(["a cat", "a dog", "a boat", "a cat", "a hen", "a fox", "a cow"])]


@dataclass(frozen=True)
class Counted(WordEmbedder):
    calls: list[int] = field(default_factory=list, compare=False)

    def encode(self, texts: Sequence[str], role: Role) -> Iterator[tuple[Ints, Floats]]:
        if role == "document":
            self.calls.append(len(texts))
        yield from super().encode(texts, role)


def test_many_are_found_as_if_added_one_by_one_and_encoded_in_one_call(tmp_path: Path) -> None:
    embedder = Counted()
    with Memory(tmp_path / "one", Pipeline(dense=Dense(embedder=WordEmbedder()))) as memory:
        numbers = [memory.add(session) for session in SESSIONS]
        listed, found = memory.list(), memory.search("Which cat did I see?", "2023-06-01", 100)
    with Memory(tmp_path / "many", Pipeline(dense=Dense(embedder=embedder))) as memory:
        assert memory.add_many(SESSIONS[:1]) == numbers[:1]
        assert memory.add_many(iter(SESSIONS[1:])) == numbers[1:]
        assert embedder.calls == [2, 6]  # each text once
        assert_frame_equal(memory.list(), listed)
        assert_frame_equal(memory.search("Which cat did I see?", "2023-06-01", 100), found)
        assert found.height > len(SESSIONS)
    with Memory(tmp_path / "many", Pipeline(dense=Dense(embedder=embedder))) as memory:
        assert_frame_equal(memory.search("Which cat did I see?", "2023-06-01", 100), found)
        assert memory.add_many([]) == []


@pytest.mark.parametrize("wrong", [
    Session("2023-05-20", [("user", "Other words")], "talk 0"), Session("2023-05-20T10:00+02:00", [("user", "Hi")]),
    "Hi"])
def test_all_or_none_are_added(tmp_path: Path, wrong: Any) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(Session("2023-05-20T10:00", [("user", "Hello")]))
        with pytest.raises(MemlabError):
            memory.add_many([*SESSIONS, wrong])
        assert memory.count() == 1
        assert memory.add_many(SESSIONS) == [*range(1, 1 + len(SESSIONS))]


def test_a_folder_that_makes_no_memory_is_refused_and_none_is_made(tmp_path: Path) -> None:
    with pytest.raises(MemlabError, match="no folder"):
        Memory.from_folder(tmp_path / "none", tmp_path / "ann")
    (tmp_path / "sessions.jsonl").write_text("{}\n")
    with pytest.raises(Faults, match="line 1"):
        Memory.from_folder(tmp_path, tmp_path / "ann")
    said = {"session": "cat", "said_on": "2023-05-20", "turns": [{"role": "user", "text": "Hi"}]}
    (tmp_path / "sessions.jsonl").write_text("\n".join(json.dumps({"corpus": name, **said}) for name in ("ann", "bob")))
    with pytest.raises(MemlabError, match=r"sessions.jsonl has 2 corpora \(ann, bob\)"):
        Memory.from_folder(tmp_path, tmp_path / "ann")
    assert not (tmp_path / "ann").exists()
