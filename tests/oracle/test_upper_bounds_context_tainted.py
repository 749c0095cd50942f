"""The one arm that shows the benchmark's ids: it says so, and differs from the plain pack by nothing else."""

from __future__ import annotations

from memlab.oracle.upper_bounds import ShownIds
from memlab.pipeline import Pipeline
from memlab.read.pack import ByRank
from memlab.store import Store
from memlab.tables import Tables, frame
from tests.read.world import shown, tokens, world

TALK = [[("user", "a0"), ("assistant", "a1")], [("user", "b0")]]


def named() -> Tables:
    tables = world(TALK, [2, 0])
    return tables.updated({"ids": frame("ids", {"kind": ["session"] * 2, "corpus": [0, 0], "session": [0, 1],
                                                "name": ["talk_7", "answer_9"]})})


def packed(stage: ShownIds | ByRank) -> list[str]:
    tables = named()
    return shown(tables.updated(stage.run(tables.only(stage.reads), Store())))


def test_every_unit_stands_under_its_sessions_own_id() -> None:
    first, second = packed(ShownIds())
    assert first == "Session answer_9:\n[2023-05-21]\nuser: b0"
    assert second == "Session talk_7:\n[2023-05-20]\nuser: a0"
    assert [text.partition("\n")[2] for text in packed(ShownIds())] == packed(ByRank())


def test_an_arm_that_shows_ids_is_tainted_and_no_upper_bound() -> None:
    arm = Pipeline(pack=ShownIds())
    assert arm.tainted()
    assert not arm.uses_oracle()
    assert not Pipeline().tainted()


def test_the_budget_counts_the_id_too() -> None:
    room = 2 * tokens("[2023-05-20]\nuser: a0")
    assert len(packed(ByRank(max_tokens=room))) == 2
    assert len(packed(ShownIds(max_tokens=room))) == 1
