from __future__ import annotations

from datetime import datetime

import polars as pl
import pytest

from memlab.errors import MemlabError
from memlab.rank.score import RandomScore
from memlab.rank.units import Level
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


@pytest.mark.parametrize("level", ["turn", "session", "memory"])
def test_random_orders_differ_by_seed_only_and_hold_all_that_a_question_may_see(level: Level) -> None:
    made = [RandomScore(level=level, seed=seed).run(world(), Store()) for seed in (0, 0, *range(1, 9))]
    assert made[0]["ranking"].equals(made[1]["ranking"])
    assert len({tuple(units_of(one, 1)) for one in made}) > 1
    # question 0 was asked a day before the second session; question 2, without a day, sees its whole corpus
    seen = [[0], [0, 1], [2]] if level == "session" else [[0, 1], [0, 1, 2], [3, 4]]
    for one in made:
        assert [sorted(units_of(one, question)) for question in range(3)] == seen


def test_memories_of_several_kinds_have_no_common_ranking() -> None:
    with pytest.raises(MemlabError, match="kinds"):
        RandomScore(level="memory").run(world(["turn"] * 4 + ["round"]), Store())
