"""Contexts that show gold, or the benchmark's ids."""

from __future__ import annotations

from datetime import timedelta

from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.tables import Tables, frame
from memlab.stages.oracle.upper_bounds import OracleContext, ShownIds
from memlab.stages.read.pack import ByRank
from memlab.store import Store
from tests.stages.read.world import shown, tokens, world
from tests.stages.write.conversations import DAY

STORE = Store()
TALK = [[("user", "a0"), ("assistant", "a1"), ("user", "a2")], [("user", "b0")], [("user", "c0"), ("assistant", "c1")]]
# units: a0 = 0, a1 = 1, a2 = 2, b0 = 3, c0 = 4, c1 = 5
A = "[2023-05-20]\nuser: a0\n\nassistant: a1\n\nuser: a2"
A2, B = "[2023-05-20]\nuser: a2", "[2023-05-21]\nuser: b0"
C0, C1 = "[2023-05-22]\nuser: c0", "[2023-05-22]\nassistant: c1"


def given_gold(tables: Tables, evidence: list[tuple[int, int | None]]) -> Tables:
    rows = {"question": [0] * len(evidence), "session": [s for s, _ in evidence], "turn": [t for _, t in evidence]}
    return tables.updated({"evidence": frame("evidence", rows)})


def packed(stage: OracleContext, tables: Tables) -> list[str]:
    return shown(tables.updated(stage.run(tables.only(stage.reads), STORE)))


def test_turns_are_the_evidence_alone_in_the_order_of_time() -> None:
    tables = given_gold(world(TALK, [5, 3]), [(2, 1), (0, 2), (0, 2)])
    assert packed(OracleContext(), tables) == [A2, C1]
    out = OracleContext().run(tables, STORE)["context"]
    assert out["unit"].to_list() == [2, 5]


def test_a_session_stands_for_evidence_whose_turn_is_unknown() -> None:
    tables = given_gold(world(TALK, []), [(2, 0), (0, None)])
    assert packed(OracleContext(), tables) == [A, C0]
    assert OracleContext().run(tables, STORE)["context"]["unit"].to_list() == [0, 4]


def test_sessions_are_whole() -> None:
    tables = given_gold(world(TALK, []), [(1, 0), (0, 2), (0, 1)])
    assert packed(OracleContext(mode="sessions"), tables) == [A, B]
    by_session = world(TALK, [], level="session")
    assert packed(OracleContext(mode="sessions"), given_gold(by_session, [(1, 0), (0, 2)])) == [A, B]


def test_gold_first_then_what_was_selected_without_repetition() -> None:
    tables = world(TALK, [5, 2, 3, 0], selected=3)
    assert packed(OracleContext(mode="gold_first"), given_gold(tables, [(2, 0), (0, 2)])) == [A2, C0, C1, B]
    # a whole session leaves nothing of it to show; no evidence leaves the selection as it is
    assert packed(OracleContext(mode="gold_first"), given_gold(tables, [(0, None)])) == [A, C1, B]
    assert packed(OracleContext(mode="gold_first"), given_gold(tables, [])) == [C1, A2, B]
    # a selected session says more than its evidence turn
    by_session = given_gold(world(TALK, [1, 0], level="session"), [(0, 2), (1, 0)])
    assert packed(OracleContext(mode="gold_first"), by_session) == [A2, B, A]


def test_a_round_or_session_is_more_than_its_evidence() -> None:
    tables = given_gold(world(TALK, [5, 3]), [(2, 1), (1, 0)])
    whole = "[2023-05-22]\nuser: c0\n\nassistant: c1"
    for value in ("round", "session"):
        assert packed(OracleContext(mode="gold_first", value=value), tables) == [B, C1, whole]  # b0 alone is all of B


def test_gold_comes_before_the_rest_of_the_budget() -> None:
    tables = given_gold(world(TALK, [5, 3]), [(0, 2)])
    assert packed(OracleContext(mode="gold_first", max_tokens=tokens(A2)), tables) == [A2]
    assert packed(OracleContext(mode="gold_first", max_tokens=tokens(A2) + tokens(B)), tables) == [A2, C1]
    assert packed(OracleContext(max_tokens=1), tables) == []


def test_a_question_without_evidence_is_shown_nothing() -> None:
    tables = given_gold(world(TALK, [0]), [])
    assert packed(OracleContext(), tables) == packed(OracleContext(mode="sessions"), tables) == []


def test_what_is_said_later_is_not_shown() -> None:
    tables = given_gold(world(TALK, [], asked=[("When?", DAY + timedelta(days=1))]), [(1, 0), (2, 0), (2, None)])
    assert packed(OracleContext(), tables) == [B]
    assert packed(OracleContext(mode="sessions"), tables) == [B]


NAMED_TALK = [[("user", "a0"), ("assistant", "a1")], [("user", "b0")]]


def named() -> Tables:
    tables = world(NAMED_TALK, [2, 0])
    return tables.updated({"ids": frame("ids", {"kind": ["session"] * 2, "corpus": [0, 0], "session": [0, 1],
                                                "name": ["talk_7", "answer_9"]})})


def packed_by(stage: ShownIds | ByRank) -> list[str]:
    tables = named()
    return shown(tables.updated(stage.run(tables.only(stage.reads), Store())))


def test_every_unit_stands_under_its_sessions_own_id() -> None:
    first, second = packed_by(ShownIds())
    assert first == "Session answer_9:\n[2023-05-21]\nuser: b0"
    assert second == "Session talk_7:\n[2023-05-20]\nuser: a0"
    assert [text.partition("\n")[2] for text in packed_by(ShownIds())] == packed_by(ByRank())


def test_an_arm_that_shows_ids_is_tainted_and_no_upper_bound() -> None:
    arm = Pipeline(pack=ShownIds())
    assert arm.tainted()
    assert not arm.uses_oracle()
    assert not Pipeline().tainted()


def test_the_budget_counts_the_id_too() -> None:
    room = 2 * tokens("[2023-05-20]\nuser: a0")
    assert len(packed_by(ByRank(max_tokens=room))) == 2
    assert len(packed_by(ShownIds(max_tokens=room))) == 1
