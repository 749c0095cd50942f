"""How far evidence got, step by step, on a world small enough to follow."""

from __future__ import annotations

import polars as pl

from memlab.evaluate.evidence import DEEP, STEPS, evidence_steps, last_steps
from memlab.tables import Tables, frame


def world(make_world) -> Tables:
    """One session of sixty turns, of which the last is not written; question 0 ranks all but turn 58."""
    made = make_world({0: [["user"] * 60]}, {0: [(0, 0), (0, 1), (0, 5), (0, 55), (0, 58), (0, 59)], 1: [(0, None)]},
                      {0: [t for t in range(60) if t < 58], 1: [3]}, selected=3)
    memories = frame("memories", {"memory": list(range(59)), "corpus": [0] * 59, "session": [0] * 59,
                                  "turns": [[t] for t in range(59)]})
    context = made["context"].filter(~((pl.col("question") == 0) & (pl.col("unit") == 1)))  # the packer left it out
    return made.updated({"memories": memories, "context": context})


def test_every_step_is_told(make_world) -> None:
    found = evidence_steps(world(make_world)).filter(pl.col("question") == 0)
    assert dict(zip(found["turn"], (STEPS[s] for s in found["step"]))) == {
        0: "shown", 1: "dropped by the packer", 5: "cut by K", 55: "ranked too low", 58: "not in the pool",
        59: "never written"}
    assert DEEP == 50


def test_what_the_readers_window_had_no_room_for_is_dropped(make_world) -> None:
    made = world(make_world)
    answers = frame("answers", {"question": [0, 1], "sample": [0, 0], "dropped": [0, 1]})
    found = evidence_steps(made.updated({"answers": answers}))
    assert [STEPS[s] for s in found.filter(pl.col("question") == 1)["step"]] == ["dropped by the packer"]
    assert found.filter(pl.col("question") == 0).equals(evidence_steps(made).filter(pl.col("question") == 0))


def test_evidence_of_a_session_is_anywhere_in_it(make_world) -> None:
    found = evidence_steps(world(make_world)).filter(pl.col("question") == 1)
    assert [STEPS[s] for s in found["step"]] == ["shown"]


def test_any_is_the_best_piece_and_all_the_worst(make_world) -> None:
    found = evidence_steps(world(make_world))
    assert dict(last_steps(found, "any").iter_rows()) == {0: "shown", 1: "shown"}
    assert dict(last_steps(found, "all").iter_rows()) == {0: "never written", 1: "shown"}
