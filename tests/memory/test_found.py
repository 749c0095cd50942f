"""Results of a search: words without decoration, roles, a printed form and a context."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from memlab.memory.found import Found
from memlab.memory.memory import Memory, Session
from memlab.stages.rank.score import Score
from memlab.stages.write.chunk import RoundChunker, SessionChunker
from tests.small import lexical

BOAT = Session("2023-05-20", [("user", "I bought a boat.\n\nYes."), ("assistant", "A boat: \x1bnice"),
                              ("user", "The boat is blue.", "Ann")])
UNDATED = Session(None, [("user", "[2023] boat")])


def test_words_are_those_of_the_turn_without_date_and_speaker(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add_many([BOAT, UNDATED])
        found = memory.search("boat", "2023-06-01", 10).sort("session", "turns")
        assert found.select("role", "speaker", "text").rows() == [
            ("user", "user", "I bought a boat.\n\nYes."), ("assistant", "assistant", "A boat: \x1bnice"),
            ("user", "Ann", "The boat is blue."), ("user", "user", "[2023] boat")]
        assert Found(found[2:]).context() == "[2023-05-20]\nAnn: The boat is blue.\n\nuser: [2023] boat"


def test_words_of_several_turns_name_their_speakers_and_have_no_role(tmp_path: Path) -> None:
    for name, chunk in (("rounds", RoundChunker()), ("sessions", SessionChunker())):
        with Memory(tmp_path / name, lexical(chunk=chunk, score=Score(level="memory"))) as memory:
            memory.add(BOAT)
            first = memory.search("boat", "2023-06-01", 10).sort("turns").row(0, named=True)
            assert first["role"] is first["speaker"] is None
            assert first["text"].startswith("user: I bought a boat.\n\nYes.\n")


def test_rows_of_something_else_are_refused_and_print_as_a_table() -> None:
    rows = [{"text": "boat", "score": 1.0}]
    assert str(Found(rows)) == repr(Found(rows)) == str(pl.DataFrame(rows))


def test_results_print_as_lines_of_text_and_make_a_context(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add_many([BOAT, UNDATED])
        found = memory.search("Which boat is blue?", "2023-06-01", 10)
        lines = str(found).split("\n")
        assert repr(found) == str(found)
        assert lines[0] == "4 results"
        assert lines[1].startswith("  1  ")
        assert lines[1].endswith("  2023-05-20  Ann: The boat is blue.")
        assert len(lines) == 5
        assert "\x1b" not in str(found)
        assert str(found.head(1)).startswith("1 result\n")
        assert found.context().startswith("[2023-05-20]\nAnn: The boat is blue.\n\n")
        assert found.context().count("boat") == 4
        assert str(found.select("rank")) == str(pl.DataFrame(found).select("rank"))
        assert str(memory.search("boat", "2023-06-01", where={"user": "ann"})) == "nothing relevant was found"


def test_below_a_question_is_what_somebody_else_replies(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(Session("2023-05-20", [("user", "Which boat? "), ("assistant", "The\nblue boat."),
                                          ("user", "Why a boat?"), ("user", "I like a boat. Do you?")]))
        found = memory.search("boat", "2023-06-01").sort("turns")
        assert found["reply"].to_list() == ["assistant: The\nblue boat.", None, None, None]
        assert "  user: Which boat?\n                       assistant: The blue boat.\n" in str(Found(found))
        assert memory.search("boat", where={"role": "user"})["reply"].null_count() == 3
