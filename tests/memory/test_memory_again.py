"""A folder or file that is read into a memory again: what was forgotten, corrected or retired there stays so."""

from __future__ import annotations

import json
import sqlite3
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from memlab.memory.memory import Memory, Session
from tests.memory.test_memory_forgotten import everything
from tests.small import content_of, lexical

PIN, BEE, DOG, BANK = "My secret pin is 4711.", "I keep bees.", "I have a dog.", "The code of my bank."
BOTH = [("user", PIN), ("user", BEE)]
NEW = Session("2024-02-01", [("user", "My pin is another.")])


def session(name: str, *texts: str, day: str = "2024-01-01", **fields: str) -> dict[str, object]:
    return {"corpus": "ann", "session": name, "said_on": day, **fields,
            "turns": [{"role": "user", "text": text} for text in texts]}


@dataclass
class Chats:
    """A folder of chats and a memory of it; ``read`` fills the memory from the folder, or imports its file."""

    root: Path
    how: str = "from_folder"

    def write(self, *lines: dict[str, object]) -> None:
        (self.root / "chats").mkdir(exist_ok=True)
        (self.root / "chats" / "sessions.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    def read(self) -> Memory:
        if self.how == "from_folder":
            return Memory.from_folder(self.root / "chats", self.root / "ann", lexical())
        memory = Memory(self.root / "ann", lexical())
        memory.import_sessions(self.root / "chats" / "sessions.jsonl")
        return memory


@pytest.fixture(params=["from_folder", "import_sessions"])
def chats(request: pytest.FixtureRequest, tmp_path: Path) -> Chats:
    return Chats(tmp_path, request.param)


def said(memory: Memory, now: str = "2024-12-01") -> list[str]:
    return sorted(memory.search("pin bees dog code", now, 100)["text"])


A, B, GROWN = session("a", PIN, BEE), session("b", BANK), session("a", PIN, BEE, DOG)
D_TEXT = "A new code."
D = session("d", D_TEXT)
CASES: dict[str, tuple[Callable[[Memory], object], list[str], list[str], bool]] = {
    "nothing": (lambda memory: None, [PIN, BEE, BANK], [DOG], False),
    "forget": (lambda memory: memory.forget("a"), [BANK], [DOG], False),
    "forget a turn": (lambda memory: memory.forget("a", [0]), [BEE, BANK], [DOG], False),
    "forget by a filter": (lambda memory: memory.forget(where={"before": "2025-01-01"}), [], [DOG], False),
    "forget all but a version": (lambda memory: [memory.update("a", NEW), memory.forget(0)], [NEW.turns[0].text, BANK],
                                 [], True),
    "correct": (lambda memory: memory.update("a", NEW, keep_old=False), [NEW.turns[0].text, BANK], [], True),
    "update and rename": (lambda memory: memory.update("a", NEW) and memory.update(
        "a", Session("2024-03-01", [("user", DOG)], "c")), [DOG, BANK], [], True),
    "forget what is updated": (lambda memory: [memory.update("a", NEW), memory.forget("a")], [BANK], [DOG], False),
    "forget, add a part": (lambda memory: [memory.forget("a"), memory.add(Session("2024-01-01", BOTH[1:], "a"))],
                           [BEE, BANK], [], True),
    "deprecate and restore": (lambda memory: [memory.deprecate("a"), memory.restore("a", [1])], [BEE, BANK], [DOG],
                              False)}


@pytest.mark.parametrize("case", CASES)
def test_what_a_person_changed_stays_so_and_new_turns_come_in(chats: Chats, case: str) -> None:
    change, expected, later, updated = CASES[case]
    chats.write(A, B)
    with chats.read() as memory:
        change(memory)
        assert said(memory) == sorted(expected)
        listed = memory.list(versions=True)
    for lines, more in (((A, B), []), ((GROWN, B, D), [*later, D_TEXT]), ((A,), [])):
        chats.write(*lines)
        with warnings.catch_warnings(record=True) as told, chats.read() as memory:
            expected = sorted([*expected, *more])
            assert said(memory) == expected
            assert more or memory.list(versions=True).equals(listed)
            listed = memory.list(versions=True)
        assert [str(one.message).count(" in the file: a. ") for one in told] == [1] * updated


def test_marks_votes_and_counts_stay_with_the_turns_of_a_chat_that_goes_on(chats: Chats) -> None:
    chats.write(A)
    with chats.read() as memory:
        memory.deprecate("a", [0], since="2024-06-01")
        memory.feedback(memory.search("bees", "2024-05-01", 1)[0], useful=True)
        votes = content_of(memory).votes.frame()
    chats.write(GROWN)
    with chats.read() as memory:
        assert memory.list().select("session", "turns", "deprecated").rows() == [(0, 3, 1)]
        assert PIN in said(memory, "2024-05-01")
        assert PIN not in said(memory)
        content = content_of(memory)
        assert content.votes.frame().equals(votes)
        assert content.accesses.frame()["times"].to_list() == [1, 3, 2]  # turn 1 was found before too
        assert memory.add(Session("2024-01-02", [("user", BANK)])) == 1
    with Memory(chats.root / "ann", lexical()) as memory:  # as it is on the disk
        assert memory.get("a").turns == Session(None, [*BOTH, ("user", DOG)]).turns


@pytest.mark.parametrize("other", [session("a", "My pin is 1.", BEE, DOG), session("a", PIN, BEE, DOG, room="x"),
                                   session("a", PIN, BEE, DOG, day="2024-01-03")])
def test_a_session_that_the_file_tells_otherwise_is_named_and_left(chats: Chats, other: dict[str, object]) -> None:
    chats.write(A, session("\x1b[31m" + 100 * "b", BANK))
    with chats.read() as memory:
        listed = memory.list()
    chats.write(other, session("\x1b[31m" + 100 * "b", DOG))
    with pytest.warns(UserWarning, match="2 sessions left .* in the file: a, ") as told, chats.read() as memory:
        assert memory.list().equals(listed)
    assert "\x1b" not in str(told[0].message)


def test_sessions_without_a_name_are_known_by_their_export(tmp_path: Path) -> None:
    unnamed = [Session("2024-01-01", [("user", text)]) for text in (PIN, BEE, BEE)]
    file = tmp_path / "all.jsonl"
    with Memory(tmp_path / "ann", lexical()) as memory:
        memory.add_many(unnamed)
        memory.export(file)
        assert memory.forget(0) == 1
        memory.update(1, NEW, keep_old=False)
        assert memory.import_sessions(file) == [2]
        assert said(memory) == sorted([BEE, NEW.turns[0].text])
    with Memory(tmp_path / "ben", lexical()) as other:
        for _ in range(2):
            assert other.import_sessions(file) == [0, 1, 2]
        other.export(tmp_path / "again.jsonl")
        other.forget(1)
        assert other.import_sessions(tmp_path / "again.jsonl") == other.import_sessions(file) == [0, 2]
        assert said(other) == [BEE, PIN]


def test_what_is_remembered_is_a_digest_with_a_key_of_its_own(tmp_path: Path) -> None:
    rows = []
    for name in ("one", "two"):
        with Memory(tmp_path / name, lexical()) as memory:
            memory.add(Session("2024-01-01", BOTH, "the name"))
            assert memory.forget("the name") == 2
            memory.backup(tmp_path / f"{name} copy")
        database = sqlite3.connect(tmp_path / name / "memory.db")
        rows.append(database.execute("SELECT session, turn FROM forgotten").fetchall())
        database.close()
        assert [turn for _, turn in rows[-1]] == [0, 1]
        assert b"the name" not in everything(tmp_path / name)
        with Memory(tmp_path / f"{name} copy", lexical()) as copy:
            Chats(tmp_path).write(session("the name", PIN, BEE, DOG))
            assert copy.import_sessions(tmp_path / "chats" / "sessions.jsonl") == [1]
            assert said(copy) == [DOG]
    assert not {*rows[0]} & {*rows[1]}
