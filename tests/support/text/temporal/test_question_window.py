"""Hand-made dates: Saturday 1 July 2023 is the question's day unless a row says otherwise."""

from __future__ import annotations

import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.support.text.temporal import question_window
from memlab.support.text.temporal.question_window import window_of

ASKED = date(2023, 7, 1)


def window(text: str, asked: date | None = ASKED) -> str:
    found = window_of(text, asked)
    return f"{found[0]} {found[1]}" if found else ""


@pytest.mark.parametrize(("text", "days"), [
    ("What did I buy yesterday?", "2023-06-30 2023-06-30"),
    ("What did I cook last night?", "2023-06-30 2023-06-30"),
    ("Where was I last week?", "2023-06-19 2023-06-25"),  # Monday to Sunday
    ("Where was I this week?", "2023-06-26 2023-07-01"),
    ("Where was I in the past week?", "2023-06-24 2023-07-01"),
    ("What did I see last weekend?", "2023-06-24 2023-06-25"),  # asked on a Saturday
    ("Who came last Saturday?", "2023-06-24 2023-06-24"),
    ("Who came on Monday?", "2023-06-26 2023-06-26"),
    ("Where was I last month?", "2023-06-01 2023-06-30"),
    ("Where was I last year?", "2022-01-01 2022-12-31"),
    ("How much did I spend in the last four months?", "2023-03-01 2023-07-01"),
    ("I visited a museum two months ago. Which?", "2023-04-16 2023-05-16"),
    ("I went running two weeks ago. Where?", "2023-06-14 2023-06-20"),
    ("What did I buy 10 days ago?", "2023-06-21 2023-06-21"),
    ("What did I read a few weeks ago?", "2023-05-24 2023-06-20"),  # 2 to 5 weeks, 3 days on either side
    # without a year, the latest one is meant
    ("What happened in May?", "2023-05-01 2023-05-31"),
    ("What happened in July?", "2023-07-01 2023-07-01"),  # cut at the question's day
    ("What happened in August?", "2022-08-01 2022-08-31"),
    ("What happened on 5 May?", "2023-05-05 2023-05-05"),
    ("What happened on 31 August?", "2022-08-31 2022-08-31"),
    ("What happened on 29 February?", "2020-02-29 2020-02-29"),
])
def test_times_relative_to_the_day_of_the_question(text: str, days: str) -> None:
    assert window(text) == days
    assert window(text, None) == ""


@pytest.mark.parametrize(("text", "days"), [
    ("What happened on 5 May 2022?", "2022-05-05 2022-05-05"),
    ("What happened on May 5th, 2022?", "2022-05-05 2022-05-05"),
    ("What happened on 2022-05-05?", "2022-05-05 2022-05-05"), ("What happened in May 2022?", "2022-05-01 2022-05-31"),
    ("What happened in February 2024?", ""),  # after the question
    ("What happened in 2022?", "2022-01-01 2022-12-31"),
    ("What happened last Friday on 23 January, 2022?", "2022-01-23 2022-01-23"),  # the date counts more
    ("What happened two weeks before August 11, 2022?", "2022-07-28 2022-07-28"),
    ("What happened on the Monday before July 24, 2022?", "2022-07-18 2022-07-18"),
    ("What happened in the month before 24 July 2022?", "2022-06-01 2022-06-30"),
    ("What happened between 5 May and 7 June 2022?", "2022-05-05 2022-06-07"),
    ("What happened on 31 June 2022?", "2022-06-01 2022-06-30"),  # no such day: the month
    # words that open or drop a window
    ("What have I read since May?", "2023-05-01 2023-07-01"),
    ("How often did I run since I started again three weeks ago?", "2023-06-07 2023-07-01"),
    ("What did I do after 3 June?", "2023-06-03 2023-07-01"),
    ("What did I do after 2022?", "2023-01-01 2023-07-01"),
    ("What did I do after last week?", "2023-06-26 2023-07-01"),
    ("What did I do after 2023?", ""),
    ("What did I know before May 2022?", ""),
    ("How many books have I read as of May 2022?", ""),
    ("What had I seen by May 2022?", ""),
])
def test_named_dates(text: str, days: str) -> None:
    assert window(text) == days


@pytest.mark.parametrize("text", [
    "How many days ago did I buy it?", "What did I paint recently?", "May I go?", "When did I march?",
    "What was my last name?", "What time did I arrive?", "How long ago was it?", "Which 2 may be left?", "",
    "How often do I run in a week?", "What was the first day of my trip?", "Who won the 2022 World Cup?",
])
def test_what_names_no_day_makes_no_window(text: str) -> None:
    assert window(text) == ""


words = st.sampled_from(re.findall(r"\S+", """last past this ago two a few week month year Friday on in May 5 2022
    2023-02-30 31 June since before the day weekend yesterday today 30 February after by 99 years of 12 months"""))


@given(st.lists(words, max_size=12).map(" ".join), st.dates(date(1990, 1, 1), date(2100, 1, 1)))
def test_a_window_has_an_order_and_ends_by_the_day_of_the_question(text: str, asked: date) -> None:
    found = window_of(text, asked)
    assert found is None or found[0] <= found[1] <= asked


@given(st.lists(words | st.sampled_from(("who", "did", "seven", "night", "autumn", "Sept.")), max_size=4).map(" ".join))
def test_a_text_that_is_set_aside_at_once_names_no_day(text: str) -> None:
    found = window_of(text, ASKED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(question_window, "_TIME", re.compile(""))
        assert window_of(text, ASKED) == found
