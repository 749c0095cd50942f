"""Sessions of a live memory: read by number or name, listed by date, counted."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from memlab.errors import MemlabError
from memlab.memory import Memory, Session
from tests.small import lexical

CAT = Session("2023-05-20", [("user", "I adopted a cat named Tom."), ("assistant", "Lovely!")], "cat")
BOAT = Session("2023-04-01", [("user", "I bought a boat."), ("user", "It is blue.", "Ann")], "boat")


def test_a_session_is_read_by_its_number_or_name_without_its_forgotten_turns(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        number = memory.add(CAT)
        memory.add(BOAT)
        assert memory.get(number) == memory.get("cat") == CAT
        memory.forget("boat", [0])
        assert memory.get("boat") == Session("2023-04-01", BOAT.turns[1:], "boat")
    with Memory(tmp_path, lexical()) as memory:
        assert memory.get("cat") == CAT


def test_a_session_that_is_not_there_is_named_with_the_nearest_name(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(CAT)
        with pytest.raises(MemlabError, match=r"there is no session 'cats'.*did you mean '?cat"):
            memory.get("cats")
        with pytest.raises(MemlabError, match=r"there is no session 7"):
            memory.get(7)


def test_sessions_are_listed_page_by_page_in_the_order_of_time(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        assert memory.list().is_empty()
        assert memory.count() == 0
        for session in (CAT, BOAT, Session(None, [("user", "Hi")])):
            memory.add(session)
        assert memory.list()["name"].to_list() == [None, "boat", "cat"]
        assert memory.list(1, 1).select("session", "name", "turns").rows() == [(1, "boat", 2)]
        assert memory.list(2)["name"].to_list() == ["cat"]
        assert memory.list(3).is_empty()
        assert memory.count() == len(memory) == 3
        memory.forget("cat")
        assert memory.count() == 2


def test_sessions_of_a_room_are_listed_by_days(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add_many([Session(f"2023-{month:02}-20", [("user", "Hi")], f"{room} {month}", room=room)
                         for month in (4, 5, 6, 7) for room in ("kitchen", "hall")])
        where = {"room": "kitchen", "after": "2023-05-01", "before": "2023-07-01"}
        assert memory.list(0, 10, where)["name"].to_list() == ["kitchen 5", "kitchen 6"]
        assert memory.list(1, 10, where)["name"].to_list() == ["kitchen 6"]
        assert memory.list(0, 1, where)["name"].to_list() == ["kitchen 5"]


@pytest.mark.parametrize("value", [-1, True, 1.5, "1"])
def test_a_page_that_is_no_number_is_refused(tmp_path: Path, value: int) -> None:
    with Memory(tmp_path, lexical()) as memory:
        with pytest.raises(MemlabError, match="start: .* is no number of sessions"):
            memory.list(value)
        with pytest.raises(MemlabError, match="count: .* is no number of sessions"):
            memory.list(0, value)


def test_results_below_a_threshold_are_not_returned(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add_many([CAT, BOAT])
        ranked = memory.look("Which cat named Tom?", "2023-06-01", 10).results
        lowest = ranked["score"][0]
        assert lowest > ranked["score"][1]
        found = memory.search("Which cat named Tom?", "2023-06-01", 10, threshold=lowest)
        assert found.equals(ranked.filter(pl.col("score") >= lowest))
        assert memory.search("Which cat named Tom?", "2023-06-01", 10, threshold=1e9).is_empty()


def test_a_name_with_half_a_character_is_found_by_itself(tmp_path: Path) -> None:
    name = "ann\ud83d"  # an emoji that was cut in the middle
    with Memory(tmp_path, lexical()) as memory:
        memory.add(Session("2023-05-20", [("user", "A cat.")], name, user=name, metadata={name: name}))
        for where in ({"user": name}, {"name": [name]}, {f"metadata.{name}": name}):
            assert memory.count(where) == memory.search("cat", where=where).height == 1
        assert memory.get(name).user == "ann?"
        memory.forget(where={"user": name})
        assert memory.count() == 0
