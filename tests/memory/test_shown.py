"""The results that people read first: copies, turns within others, and the newest of a topic."""

from datetime import datetime

import polars as pl

from memlab.memory.results import RESULT
from memlab.memory.shown import first_results


def ranked(*rows: tuple[str, int, int, list[int]]) -> pl.DataFrame:
    """Return a ranking of (text, month, session, turns)."""
    return pl.DataFrame([{
        "rank": n, "score": 1 / n, "selected": True, "date": datetime(2023, month, 1), "session": session,
        "name": None, "turns": turns, "speaker": speaker or None, "text": said}
        for n, (text, month, session, turns) in enumerate(rows, 1) for speaker, _, said in [text.rpartition(": ")]],
        schema=RESULT, orient="row")


def test_copies_are_merged_and_the_latest_of_near_copies_is_marked() -> None:
    shown = first_results("Who is my manager now?", ranked(
        ("user: My manager is Ana.", 1, 0, [0]), ("user: My manager is Ben.", 6, 2, [1]),
        ("user:  my manager is ana.", 3, 1, [4]), ("user: I like tea.", 9, 3, [0])), 5)
    assert [(one.text, one.copies, one.older) for one in shown] == [
        ("user: My manager is Ana.", 2, ()), ("user: My manager is Ben.", 1, (0,)), ("user: I like tea.", 1, ())]
    assert [day.month for day in shown[0].days] == [1, 3]
    assert shown[0].place == "session 1"


def test_what_shares_a_word_with_the_question_and_is_no_near_copy_is_not_marked() -> None:
    shown = first_results("What is the API limit?", ranked(
        ("Sam: Is the API limit documented anywhere?", 1, 0, [0]),
        ("Ana: Write the limit of the API on the wall.", 3, 1, [0]),
        ("Priya: Datadog costs 49 euros per month.", 4, 2, [0]),
        ("Priya: Grafana costs 39 euros per month.", 5, 3, [0]),
        ("Priya: The API limit is 600 requests per minute.", 6, 4, [0])), 5)
    assert [one.older for one in shown] == [()] * 5


def test_a_turn_within_a_result_is_not_shown_again_and_five_are_enough() -> None:
    rows = [("a b", 1, 0, [0, 1]), ("a", 1, 0, [0]), *((f"t{n}", 1, n, [0]) for n in range(1, 9))]
    assert [one.text for one in first_results("x", ranked(*rows), 5)] == ["a b", "t1", "t2", "t3", "t4"]
    assert first_results("x", ranked(), 5) == []
