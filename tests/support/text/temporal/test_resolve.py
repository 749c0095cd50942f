"""Rules against the hand-labelled list, and what must hold of any text."""

from __future__ import annotations

import csv
from datetime import date, datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.support.text.temporal.calendar import nth_weekday, season
from memlab.support.text.temporal.context import tense
from memlab.support.text.temporal.holidays import date_of_holiday
from memlab.support.text.temporal.resolve import TRIGGER, find_expressions

LIST = Path(__file__).parent / "dates_200.tsv"
WEDNESDAY = datetime(2023, 5, 24)
PIECES = st.sampled_from(
    ["last", "next", "this", "on", "in", "for", "several", "a few", "Friday", "Sat", "week", "weekend", "weeks ago",
     "May", "March 31", "31", "30th of February", "99/99", "1/2", "2023-13-45", "0 days ago", "999 years ago", "\n",
     "yesterday", "at 3 pm", "the day after", "the week before", "Christmas", "Easter 2024", "the summer", "in the 90s",
     "half an hour ago", "in 999 years", "a week from Friday", "I went", "we will go", "\u2019s", "the 31st", "now",
     "before last"])


def forms(text, said=WEDNESDAY):
    return [f.value for f in find_expressions(text, said)]


def rows():
    with LIST.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_rules_resolve_what_is_labelled():
    told = [(row, forms(row["sentence"], datetime.fromisoformat(row["said_on"]))) for row in rows()]
    wrong = [row["sentence"] for row, told_forms in told if "; ".join(told_forms) != row["expected"]]
    assert len(wrong) <= 2, wrong


@pytest.mark.parametrize(("said", "day"), [("2021-06-01", "2020-02-29"), ("2022-06-01", "2020-02-29"),
                                           ("2023-06-01", "2024-02-29"), ("2024-06-01", "2024-02-29")])
def test_a_day_of_leap_years(said, day):
    assert forms("I met her on 29 February.", datetime.fromisoformat(said)) == [day]


@pytest.mark.parametrize(("said", "last", "on_past", "on_future", "following"), [
    ("2023-05-24", "2023-05-19", "2023-05-19", "2023-05-26", "2023-05-26"),  # a Wednesday
    ("2023-05-26", "2023-05-19", "2023-05-26", "2023-06-02", "2023-06-02"),  # itself a Friday
    ("2023-05-27", "2023-05-26", "2023-05-26", "2023-06-02", "2023-06-02"),  # a Saturday
])
def test_the_rules_of_weekdays(said, last, on_past, on_future, following):
    day = datetime.fromisoformat(said)
    assert forms("I saw her last Friday.", day) == [last]
    assert forms("I saw her on Friday.", day) == [on_past]
    assert forms("I will see her on Friday.", day) == [on_future]
    assert forms("See you next Friday!", day) == [following]


def test_what_happened_is_told_from_what_is_planned_or_bounds_a_stretch():
    assert [f.day for f in find_expressions("I met him last Friday.", WEDNESDAY)] == [date(2023, 5, 19)]
    assert [f.day for f in find_expressions("I sold it the day after Christmas.", WEDNESDAY)] == [date(2022, 12, 26)]
    assert [f.day for f in find_expressions("It rained yesterday at 5:30 pm.", WEDNESDAY)] == [date(2023, 5, 23)]
    for text in ("I will see him next Friday.", "I have been ill since last Friday.", "I moved last month.",
                 "I read it last week."):
        assert [f.day for f in find_expressions(text, WEDNESDAY)] == [None], text


def test_a_time_of_day_is_known_only_if_the_moment_is():
    assert forms("I left two hours ago.", datetime(2023, 5, 24, 1)) == ["2023-05-23T23:00"]
    assert forms("I left two hours ago.", WEDNESDAY) == []


def test_words_and_places_are_those_of_the_text():
    text = "Hm.\nOn New Year\u2019s Eve we met, and yesterday  too"
    assert [(text[f.start : f.end], f.value) for f in find_expressions(text, WEDNESDAY)] == [
        ("New Year\u2019s Eve", "2022-12-31"), ("yesterday", "2023-05-23")]


def test_tense_looks_before_then_after_and_not_beyond_the_sentence():
    line = "We met. On Friday I will cook. It is done"
    assert tense(line, line.index("Friday"), line.index("Friday") + 6) == "future"
    assert tense("Nothing here on Friday", 16, 22) is None
    assert tense("I get started on Friday", 17, 23) is None


def test_movable_feasts_and_seasons():
    assert [date_of_holiday("Easter", y) for y in (2000, 2008, 2019, 2038)] == [
        date(2000, 4, 23), date(2008, 3, 23), date(2019, 4, 21), date(2038, 4, 25)]
    assert nth_weekday(2023, 11, 3, 4) == date(2023, 11, 23)
    assert nth_weekday(2023, 2, 0, 5) is None
    assert season("winter", 2023) == (date(2023, 12, 1), date(2024, 2, 29))


@given(st.text(max_size=60) | st.lists(PIECES, max_size=8).map(" ".join),
       st.datetimes() | st.just(datetime(1, 1, 1)) | st.just(datetime(9999, 12, 31, 23, 59)))
def test_no_text_on_no_day_is_too_odd(text, said):
    for f in find_expressions(text, said):
        assert f.text == text[f.start : f.end]
        assert f.value
        assert f.day is None or f.day <= said.date()
        assert pl.Series([line for line in text.split("\n") if f.text in line]).str.contains(TRIGGER).any()


@given(st.lists(st.sampled_from(["I", "like", "green", "tea", "and", "my", "bike", "was", "very", "old", "but", "we",
                                 "kept", "it", "in", "the", "shed", "with", "Tom", "a", "second", "may", "march"])))
def test_no_word_of_time_gives_no_date(words):
    assert find_expressions(" ".join(words), WEDNESDAY) == []
