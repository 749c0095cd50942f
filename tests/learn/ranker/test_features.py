from __future__ import annotations

import math
from datetime import datetime

import polars as pl
import pytest

from memlab.learn.ranker.features import features
from memlab.pipeline.tables import Tables, frame, text_hash, texts_frame
from memlab.support.errors import MemlabError

SAID = ["Ann went to Rome in May", "I like it", "Did Bob buy 3 books?", "Yes, in Rome"]
ASKED = "When did Ann go to Rome on 3 May 2023?"


def world(level: str = "turn") -> Tables:
    """One conversation of two sessions of two turns; the ranking has three of them, the last beyond the depth of 2."""
    texts = texts_frame([*SAID, ASKED])
    return Tables(
        texts=texts,
        questions=frame("questions", {"question": [0], "corpus": [0], "text_id": [text_hash(ASKED)],
                                      "asked_on": [datetime(2023, 6, 1)]}),
        turns=frame("turns", {"corpus": [0] * 4, "session": [0, 0, 1, 1], "turn": [0, 1, 0, 1],
                              "role": ["user", "assistant", "user", "user"], "speaker": ["Ann", None, "Bob", "Bob"],
                              "text_id": [text_hash(text) for text in SAID]}),
        queries=frame("queries", {"query": [0], "question": [0], "kind": ["original"], "text_id": [text_hash(ASKED)]}),
        sessions=frame("sessions", {"corpus": [0, 0], "session": [0, 1],
                                    "said_on": [datetime(2023, 5, 3), datetime(2023, 5, 10)]}),
        units=frame("units", {"unit": range(4), "corpus": [0] * 4, "session": [0, 0, 1, 1],
                              "turns": [[0], [1], [0], [1]], "level": [level] * 4}),
        ranking=frame("ranking", {"question": [0] * 3, "unit": [0, 3, 1], "score": [5.0, 3.0, 1.0], "rank": [1, 2, 3],
                                  "selected": [False] * 3, "lane:turn": [None, 2.0, 8.0]}),
    )


def row(unit: int, **tables: pl.DataFrame) -> dict[str, float]:
    made = features(world().updated(tables), depth=2)
    return made.filter(pl.col("unit") == unit).row(0, named=True)


def test_the_turn_and_its_neighbours() -> None:
    assert features(world(), depth=2)["unit"].to_list() == [0, 3]
    one, last = row(0), row(3)
    assert (one["speaker named"], last["speaker named"]) == (1, 0)
    assert (one["time word"], last["time word"]) == (0, 0)
    assert last["ends with ? -1"] == 1
    assert one["words"] == pytest.approx(math.log(7))
    assert (one["place share"], last["place share"]) == (0, 1)
    assert "asks when" not in one


def test_words_that_are_shared_count_by_their_rarity_among_the_candidates() -> None:
    one, last = row(0), row(3)
    # terms asked: ann, go, rome, 3, may, 2023, on is a stop word; rome is in both candidates, ann and may in one
    once, both, never = math.log(1 + 2 / 1), math.log(1 + 2 / 2), math.log(1 + 2 / .5)
    total = 2 * once + both + 3 * never
    assert one["word overlap"] == pytest.approx((2 * once + both) / total)
    assert last["word overlap"] == pytest.approx(both / total)
    assert last["word below"] == pytest.approx(2 * once / total)
    assert one["word alone"] == pytest.approx(2 * once + both / 2)
    assert last["word overlap -1"] == pytest.approx(never / total)  # the 3 of its neighbour
    assert last["word joined"] == pytest.approx((both + never) / total)
    assert (one["word count"], one["word asked"], one["word missed"]) == (3, 6, 3)
    assert one["name count"] == 2  # Rome and May; Ann speaks


def test_dates_are_compared_with_the_day_that_the_question_names() -> None:
    one, last = row(0), row(3)
    assert (one["days from named"], last["days from named"]) == (0, pytest.approx(math.log(8)))
    assert (one["days after named"], last["days after named"]) == (0, 7)
    assert (one["date place"], last["date place"]) == (0, 1)
    assert last["age"] == pytest.approx(math.log(23))


def test_a_control_that_asks_another_question_is_given_its_words() -> None:
    wrong = world()["queries"].with_columns(kind=pl.lit("wrong"), text_id=pl.lit(text_hash(SAID[1])))
    one = row(0, queries=wrong)
    assert (one["word overlap"], one["speaker named"], one["days from named"]) == (0, 0, None)
    assert one["z linear"] == row(0)["z linear"]


def test_alone_neither_a_signal_nor_a_shared_word_is_left() -> None:
    left = features(world(), 2, alone=True)
    assert left.select("asks when", "asks where").row(0) == (1, 0)
    kept = {"question", "unit", "words", "digit", "asks when", "place"}
    assert kept <= set(left.columns)
    shared = ("z ", "linear", "lane", "overlap", "named", "date")
    assert not [c for c in left.columns if any(word in c for word in shared)]


def test_sessions_are_refused() -> None:
    with pytest.raises(MemlabError, match="ranks turns"):
        features(world("session"), depth=2)
