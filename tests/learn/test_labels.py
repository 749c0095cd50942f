from __future__ import annotations

from memlab.learn.labels import first_holders, smallest_k
from memlab.tables import frame


def world(turn_gold: list[int | None]):
    """One question; units are turns (session, turn): 0 (0,0), 1 (0,1), 2 (1,0), 3 (2,0), ranked 3, 1, 0, 2."""
    units = frame("units", {"unit": [0, 1, 2, 3], "corpus": [0] * 4, "session": [0, 0, 1, 2],
                            "turns": [[0], [1], [0], [0]], "level": ["turn"] * 4})
    ranking = frame("ranking", {"question": [5] * 4, "unit": [3, 1, 0, 2], "score": [4.0, 3.0, 2.0, 1.0],
                                "rank": [1, 2, 3, 4], "selected": [False] * 4})
    evidence = frame("evidence", {"question": [5] * len(turn_gold), "session": [0, 1][: len(turn_gold)],
                                  "turn": turn_gold})
    return ranking, units, evidence


def test_complete_evidence_in_sessions_and_in_turns() -> None:
    assert smallest_k(*world([0, 0]), "session").rows() == [(5, 4, 4)]
    assert smallest_k(*world([0]), "session").rows() == [(5, 2, 2)]  # any turn of session 0
    assert smallest_k(*world([0]), "turn").rows() == [(5, 3, 3)]     # turn 0 itself
    assert smallest_k(*world([None]), "turn").rows() == [(5, 2, 2)]  # only the session is known


def test_evidence_out_of_reach_is_never_complete() -> None:
    ranking, units, evidence = world([0, 0])
    assert smallest_k(ranking.head(3), units, evidence, "session").rows() == [(5, None, 2)]
    assert smallest_k(ranking.head(1), units, evidence, "session").rows() == [(5, None, None)]
    assert smallest_k(ranking, units, evidence.head(0), "session").is_empty()


def test_first_holders_name_the_first_unit_of_each_item() -> None:
    ranking, units, evidence = world([0, 0])
    assert first_holders(ranking, units, evidence, "turn").select("session", "unit", "rank").rows() == [
        (0, 0, 3), (1, 2, 4)]
    assert first_holders(ranking.head(3), units, evidence, "session").select("session", "unit", "rank").rows() == [
        (0, 1, 2), (1, None, None)]
