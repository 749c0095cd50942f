from __future__ import annotations

from datetime import datetime

import polars as pl
import pytest

from memlab.errors import MemlabError
from memlab.rank.score import LengthBaseline, RandomScore
from memlab.store import Store
from memlab.tables import Tables, frame, text_hash, texts_frame

EARLY, LATE = datetime(2023, 5, 1, 9), datetime(2023, 5, 2, 9)
WORDS = ["aaaa", "a", "aaa", "aa", "aaaaaa"]


def world(kinds: list[str] | None = None) -> Tables:
    """Corpus 0 has sessions 0 (two turns) and 1 (one turn, a day later); corpus 1 has one session of two turns."""
    places = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 0, 1)]
    corpus, session, turn = ([p[i] for p in places] for i in range(3))
    said = [LATE if (c, s) == (0, 1) else EARLY for c, s, _ in places]
    texts = texts_frame([*WORDS, "q"])
    return Tables(
        texts=texts,
        turns=frame("turns", {"corpus": corpus, "session": session, "turn": turn,
                              "text_id": [text_hash(w) for w in WORDS]}),
        sessions=frame("sessions", {"corpus": [0, 0, 1], "session": [0, 1, 0], "said_on": [EARLY, LATE, EARLY]}),
        questions=frame("questions", {"question": [0, 1, 2], "corpus": [0, 0, 1], "text_id": [text_hash("q")] * 3,
                                      "asked_on": [EARLY.replace(hour=1), LATE, None]}),
        memories=frame("memories", {"memory": range(5), "corpus": corpus, "session": session, "said_on": said,
                                    "turns": [[t] for t in turn], "kind": kinds or ["turn"] * 5,
                                    "key_id": [text_hash(w) for w in WORDS],
                                    "value_id": [text_hash(w) for w in WORDS]}))


def units_of(tables: Tables, question: int) -> list[int]:
    return tables["ranking"].filter(pl.col("question") == question).sort("rank")["unit"].to_list()


def test_longest_first_ranks_all_that_a_question_may_see() -> None:
    made = LengthBaseline().run(world(), Store())
    assert units_of(made, 0) == [0, 1]  # the second session was said a day after it was asked
    assert units_of(made, 1) == [0, 2, 1]
    assert units_of(made, 2) == [4, 3]  # no date: sees its whole corpus


def test_a_session_is_as_long_as_its_longest_memory() -> None:
    made = LengthBaseline(level="session").run(world(), Store())
    assert units_of(made, 1) == [0, 1]
    assert made["ranking"].filter(pl.col("question") == 1)["score"].to_list() == [4, 3]


@pytest.mark.parametrize("level", ["turn", "session", "memory"])
def test_random_orders_differ_by_seed_only_and_hold_the_same_units(level) -> None:
    tables = world()
    one, again = RandomScore(level=level).run(tables, Store()), RandomScore(level=level).run(tables, Store())
    assert one["ranking"].equals(again["ranking"])
    others = [RandomScore(level=level, seed=s).run(tables, Store()) for s in range(1, 9)]
    assert {tuple(units_of(o, 1)) for o in others} != {tuple(units_of(one, 1))}
    longest = LengthBaseline(level=level).run(tables, Store())
    for made in (one, *others):
        for question in range(3):
            assert sorted(units_of(made, question)) == sorted(units_of(longest, question))


def test_memories_of_several_kinds_have_no_common_ranking() -> None:
    with pytest.raises(MemlabError, match="kinds"):
        RandomScore(level="memory").run(world(["turn"] * 4 + ["round"]), Store())
