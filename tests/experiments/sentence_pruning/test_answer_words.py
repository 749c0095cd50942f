from __future__ import annotations

from datetime import timedelta

import numpy as np
import polars as pl
import pytest
from sentence_pruning.answer_words import answer_words, held_words, share, wanted_words

from memlab.tables import Tables, frame
from tests.read.world import world
from tests.write.conversations import DAY

pytestmark = pytest.mark.nightly

TALK = [[("user", "I adopted a grey cat."), ("assistant", "Lovely!")], [("user", "We moved to Oslo, then Bergen.")]]
LATER = DAY + timedelta(days=400)


def asked(*cases: tuple[str, str | None, list[tuple[int, int | None]]], scored: bool = True) -> Tables:
    """Questions with their answers and evidence (session, turn)."""
    tables = world(TALK, [0, 1, 2], asked=[(f"{text}", LATER) for text, _, _ in cases])
    rows = [(q, s, t) for q, (_, _, places) in enumerate(cases) for s, t in places]
    return tables.updated({
        "evidence": frame("evidence", dict(zip(["question", "session", "turn"], zip(*rows)))),
        "gold": frame("gold", {"question": range(len(cases)), "answer": [answer for _, answer, _ in cases],
                               "scored": [scored] * len(cases)})})


def wanted(tables: Tables) -> list[tuple[int, str]]:
    return wanted_words(tables).rows()


def test_the_content_words_of_an_answer_that_is_said_are_wanted_as_stems() -> None:
    tables = asked(("Where did we live?", "In Oslo and the Bergen", [(1, 0)]), ("Which pet?", "Cats, grey", [(0, 0)]))
    assert wanted(tables) == [(0, "bergen"), (0, "oslo"), (1, "cat"), (1, "grei")]


@pytest.mark.parametrize(("text", "answer", "places"), [
    ("Which pet?", "a tabby cat", [(0, 0)]),        # tabby is said nowhere
    ("Where to?", "Oslo", [(0, 0)]),                # said, but not in its evidence
    ("Which grey cat?", "The cat is grey", [(0, 0)]),  # all words stand in the question
    ("Which pet?", "the", [(0, 0)]),
    ("Which pet?", None, [(0, 0)]),
    ("Which pet?", "cat", [(0, None)]),             # only the session is known
])
def test_other_answers_are_left_out(text, answer, places) -> None:
    tables = asked((text, answer, places), ("Which pet?", "cat", [(0, 0)]))
    assert wanted(tables) == [(1, "cat")]


def test_a_question_that_does_not_count_is_left_out() -> None:
    assert wanted_words(asked(("Which pet?", "cat", [(0, 0)]), scored=False)).is_empty()


def test_words_of_several_evidence_turns_count_together_and_words_of_the_question_do_not() -> None:
    tables = asked(("What about Oslo?", "a grey cat in Oslo", [(0, 0), (1, 0)]))
    assert wanted(tables) == [(0, "cat"), (0, "grei")]


def test_words_are_found_as_the_f1_judge_writes_them() -> None:
    words = pl.DataFrame({"question": [0, 0, 1], "word": ["cat", "1000", "cat"]}, schema_overrides={
        "question": pl.Int32})
    shown = pl.DataFrame({"row": [0, 1, 2, 3], "question": [0, 0, 1, 2],
                          "text": ["Cats!\nno", "it cost $1,000.", "a\tcat", "cat"]},
                         schema_overrides={"question": pl.Int32})
    assert held_words(shown, words).sort("row").rows() == [(0, 0, "cat"), (1, 0, "1000"), (2, 1, "cat")]


def test_the_share_counts_a_word_once_however_often_it_is_shown() -> None:
    words = pl.DataFrame({"question": [3, 3, 7], "word": ["cat", "dog", "cat"]}, schema_overrides={
        "question": pl.Int32})
    shown = pl.DataFrame({"row": [0, 1, 2, 3], "question": [3, 3, 3, 7],
                          "text": ["cat", "a cat", "dogs and cats", "no"]}, schema_overrides={"question": pl.Int32})
    held = answer_words(shown, words)

    for rows, expected in (([0, 1, 3], [.5, 0]), ([2], [1, 0]), ([], [0, 0])):
        assert share(held, np.isin(np.arange(4), rows)).tolist() == expected
