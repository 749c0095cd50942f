from __future__ import annotations

import polars as pl

from memlab.evaluate.summary import accuracy, confusion, right_by_type
from memlab.question_types import classes_of_type

TOLD = pl.DataFrame({"question": [0, 1, 1, 2, 3, 4, 5, 7],
                     "class": ["counting", "update", "factual", "factual", "multi_session", "temporal", "general",
                               "factual"]})
TYPES = pl.DataFrame({"question": range(8), "category": [
    "multi-session", "multi-session", "single-session-user", "multi-session", "adversarial", "single-session-user",
    "temporal-reasoning", None]})


def test_the_confusion_by_hand() -> None:
    counts = confusion(TOLD, TYPES)
    assert counts.rows() == [
        ("adversarial", "temporal", 1), ("multi-session", "counting", 1), ("multi-session", "multi_session", 1),
        ("multi-session", "update", 1),  # its first row counts
        ("single-session-user", "factual", 1), ("single-session-user", "general", 1),
        ("temporal-reasoning", None, 1)]  # question 6 was told none; 7 has no type
    assert right_by_type(counts).rows() == [("adversarial", None, 1), ("multi-session", 2, 3),
                                            ("single-session-user", 2, 2), ("temporal-reasoning", 0, 1)]
    assert accuracy(counts) == (4, 6)


def test_what_fits_is_stated() -> None:
    assert classes_of_type("single-hop") == ("factual", "general")
    assert classes_of_type("single-session-preference") == ("preference",)
    assert classes_of_type("recipes") == ()


def test_the_order_of_questions_does_not_matter_and_nothing_gives_nothing() -> None:
    assert confusion(TOLD, TYPES.reverse()).equals(confusion(TOLD, TYPES))
    assert accuracy(confusion(TOLD, TYPES.head(0))) == (0, 0)
