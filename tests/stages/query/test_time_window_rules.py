from __future__ import annotations

from datetime import datetime

from memlab.stages.query.time_window import AppendDates, RuleWindows
from tests.stages.query.worlds import asked, done, searched

TALK = asked("What did I buy last Friday?", "What did I buy?", "Where was I in May?", "Where was I last week?")


def test_windows_are_set_where_a_time_is_named_and_nothing_else_changes():
    queries = done(RuleWindows(), TALK)["queries"]
    assert queries["window"].to_list() == [
        [datetime(2023, 6, 30), datetime(2023, 6, 30)], None, [datetime(2023, 5, 1), datetime(2023, 5, 31)],
        [datetime(2023, 6, 19), datetime(2023, 6, 25)]]
    assert queries.drop("window").equals(TALK["queries"].drop("window"))


def test_dates_are_put_behind_the_words():
    assert [words for _, _, words, _ in searched(done(AppendDates(), TALK))] == [
        "What did I buy last Friday? (Friday 30 June 2023)", "What did I buy?", "Where was I in May? (May 2023)",
        "Where was I last week? (19 June 2023 to 25 June 2023)"]


def test_a_question_without_a_day_has_only_named_dates():
    tables = asked("What did I buy last Friday?", "What did I buy in 2022?", on=None)
    assert done(RuleWindows(), tables)["queries"]["window"].to_list() == [
        None, [datetime(2022, 1, 1), datetime(2022, 12, 31)]]
