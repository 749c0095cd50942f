"""Times with UTC offsets, without, and dates in a live memory: one rule for sessions and questions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from memlab.memory.memory import Memory, Session
from memlab.support.errors import MemlabError
from tests.small import lexical

TOKYO = datetime(2025, 5, 21, 1, 30, tzinfo=timezone(timedelta(hours=9)))  # 16:30 UTC on the 20th
LA = "2025-05-20T23:30:00-07:00"  # 06:30 UTC on the 21st
NIGHT = "2025-05-20T23:59:00+00:00"


def add(memory: Memory, said_on: datetime | date | str | None, name: str) -> int:
    return memory.add([{"role": "user", "content": f"cat {name}"}], said_on=said_on, name=name)


def seen(memory: Memory, now: datetime | date | str | None) -> set[str]:
    names = dict(memory.list().select("session", "name").iter_rows())
    return {names[session] for session in memory.search("cat", now, k=100)["session"]}


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    with Memory(tmp_path / "m", lexical()) as made:
        add(made, TOKYO, "tokyo")
        add(made, LA, "la")
    return Memory(tmp_path / "m", lexical())  # read again from the disk


def test_times_with_an_offset_are_compared_as_moments(memory: Memory) -> None:
    with memory:
        for now in (NIGHT, datetime(2025, 5, 20, 23, 59, tzinfo=UTC), "2025-05-21T08:59+09:00", date(2025, 5, 20)):
            assert seen(memory, now) == {"tokyo"}
        assert seen(memory, "2025-05-20T17:00-07:00") == {"tokyo", "la"}  # the 21st in UTC
        assert seen(memory, None) == {"tokyo", "la"}
        assert memory.list()["said_on"].to_list() == [datetime(2025, 5, 20, 16, 30), datetime(2025, 5, 21, 6, 30)]
        assert memory.look("cat", NIGHT).asked_on == datetime(2025, 5, 20, 23, 59)
        assert memory.history("cat", NIGHT)["said_on"].to_list() == [datetime(2025, 5, 20, 16, 30)]


@pytest.mark.parametrize(("zone", "names"), [("UTC", {"tokyo"}), ("Asia/Tokyo", {"tokyo", "la"})])
def test_days_are_those_of_the_memory_s_zone(memory: Memory, zone: str, names: set[str]) -> None:
    with Memory(memory.folder, lexical(), timezone=zone) as there:
        assert seen(there, NIGHT) == names


MIXED = "write an offset everywhere or nowhere; a date without a time goes with both"
QUESTIONS: list[Callable[[Memory, str], object]] = [
    lambda memory, now: memory.search("cat", now), lambda memory, now: memory.look("cat", now),
    lambda memory, now: memory.history("cat", now), lambda memory, now: memory.prune(now)]


@pytest.mark.parametrize("ask", QUESTIONS)
def test_a_question_of_the_other_kind_is_refused(tmp_path: Path, memory: Memory, ask: Callable[..., object]) -> None:
    with memory, pytest.raises(MemlabError, match=rf"now: .* has no UTC offset, but .*\+09:00 \(session 0\).*{MIXED}"):
        ask(memory, "2025-05-20T23:59")
    with Memory(tmp_path / "walls", lexical()) as walls:
        add(walls, "2025-05-20T00:00", "a")
        ask(walls, "2025-05-20T23:59")
        with pytest.raises(MemlabError, match=rf"now: .* has a UTC offset, but .*T00:00:00 \(session 0\).*{MIXED}"):
            ask(walls, NIGHT)


def test_a_session_of_the_other_kind_is_refused_and_nothing_is_added(memory: Memory) -> None:
    with memory:
        for naive in ("2025-05-21T08:00", datetime(2025, 5, 21)):
            with pytest.raises(MemlabError, match=f"has no UTC offset.*{MIXED}"):
                add(memory, naive, "naive")
        with pytest.raises(MemlabError, match=MIXED):
            memory.add(Session("2025-05-21T08:00", [("user", "cat")]))
        assert len(memory) == 2
        add(memory, "2025-05-20", "day")
        add(memory, None, "undated")
        assert seen(memory, NIGHT) == {"tokyo", "day", "undated"}
        assert memory.list()["name"].to_list() == ["undated", "day", "tokyo", "la"]
        memory.forget("tokyo")
        with pytest.raises(MemlabError, match=MIXED):
            add(memory, "2025-05-21T08:00", "naive")
        memory.forget("la")
        add(memory, "2025-05-21T08:00", "naive")  # only dates are left, which go with both
        assert seen(memory, "2025-05-21T07:00") == {"day", "undated", "naive"}
