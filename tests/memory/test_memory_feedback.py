"""Feedback on results and how often they were returned: recorded by the memory, and mixed into its scores."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from memlab.memory.memory import Memory, Session
from memlab.pipeline.pipeline import Pipeline
from memlab.stages.rank.boost import Boost
from memlab.stages.rank.signals import AccessCount, Feedback
from tests.small import lexical

BOOST = Boost(signals=(Feedback(), AccessCount()), normaliser="minmax",
              weights={"first": 0.9, "feedback": 0.1, "accesses": 0.05})
SAID = [Session("2023-05-20", [("user", "A red boat sails."), ("assistant", "A red boat is quick.")], "red"),
        Session("2023-05-21", [("user", "A blue boat sails.")], "blue"),
        Session("2023-05-22", [("user", "A green boat sails.")], "green")]
NOW = "2023-06-01"


def pipeline(**stages: Any) -> Pipeline:
    return lexical(boost=BOOST, **stages)


def signal(memory: Memory, name: str, now: str = NOW) -> dict[tuple[int, int], float]:
    """The signal of each turn, by session and turn, on a day."""
    found = memory.look("boat", now, 10).results
    return {(session, turns[0]): value for session, turns, value in found.select("session", "turns", name).iter_rows()}


def test_votes_are_smoothed_counts_as_of_the_day_of_the_question(tmp_path: Path) -> None:
    with Memory(tmp_path, pipeline()) as memory:
        memory.add_many(SAID)
        found = memory.search("red boat sails", NOW)
        assert set(found["feedback"]) == {0.5}
        best = found.row(0, named=True)
        assert (best["session"], best["turns"]) == (0, [0])
        memory.feedback(best, useful=True, now="2023-06-03")
        memory.feedback(found[0], useful=True, now="2023-06-04")  # a row of the frame
        memory.feedback(found.filter(found["session"] != 0), useful=False, now="2023-06-04")  # a vote on each
        memory.feedback({"session": "blue", "turns": [0]}, useful=True, now="2023-06-05")
        expected = {NOW: [1 / 2] * 4, "2023-06-03": [2 / 3, 1 / 2, 1 / 2, 1 / 2],
                    "2023-06-04": [3 / 4, 1 / 2, 1 / 3, 1 / 3], "2023-06-05": [3 / 4, 1 / 2, 2 / 4, 1 / 3]}
        for now, values in expected.items():
            told = signal(memory, "feedback", now)
            assert [told[place] for place in ((0, 0), (0, 1), (1, 0), (2, 0))] == pytest.approx(values)
    with Memory(tmp_path, pipeline()) as memory:
        assert signal(memory, "feedback", "2023-06-05")[0, 0] == 3 / 4
        assert memory.search("boat", "2023-06-05", where={"name": "blue"})["feedback"].to_list() == [2 / 4]


def test_what_was_returned_counts_from_the_next_question_on(tmp_path: Path) -> None:
    with Memory(tmp_path, pipeline()) as memory:
        memory.add_many(SAID)
        assert set(memory.search("blue", NOW, 1)["accesses"]) == {0.0}
        assert memory.search("blue", "2023-06-02", 1)["accesses"][0] == pytest.approx(math.log(2))
        found = memory.search("blue", "2023-06-02", 4)
        assert found["accesses"].to_list() == pytest.approx([math.log(3), 0, 0, 0])
        assert memory.search("blue", NOW, 1)["accesses"][0] == 0  # returned on a later day
