"""Sessions of a live memory: read by number or name, listed by date, counted."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from memlab.memory.memory import Memory, Session
from tests.small import lexical

CAT = Session("2023-05-20", [("user", "I adopted a cat named Tom."), ("assistant", "Lovely!")], "cat")
BOAT = Session("2023-04-01", [("user", "I bought a boat."), ("user", "It is blue.", "Ann")], "boat")


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


def test_results_below_a_threshold_are_not_returned(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add_many([CAT, BOAT])
        ranked = memory.look("Which cat named Tom?", "2023-06-01", 10).results
        lowest = ranked["score"][0]
        assert lowest > ranked["score"][1]
        found = memory.search("Which cat named Tom?", "2023-06-01", 10, threshold=lowest)
        assert found.equals(ranked.filter(pl.col("score") >= lowest))
        assert memory.search("Which cat named Tom?", "2023-06-01", 10, threshold=1e9).is_empty()
