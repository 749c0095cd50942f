from __future__ import annotations

import warnings
from datetime import datetime

import pytest

from memlab.stages.query.time_window import LLMWindows
from memlab.store import Store
from tests.chats import ScriptedChat
from tests.fences import inside
from tests.stages.query.worlds import asked, done

TALK = asked("What did I buy last Friday?", "Who is Ann?", "Where was I?", "What was in May?", "What then?",
             "What next?")
REPLIES = {
    "What did I buy last Friday?": '{"start": "2023-06-30", "end": "2023-06-30"}',
    "Who is Ann?": '{"start": null, "end": null}',
    "Where was I?": "last month, I think",
    "What was in May?": '{"start": "2023-05-31", "end": "2023-05-01"}',
    "What then?": 'Sure: {"start": "2023-06-20", "end": "2024-01-01"}',
    "What next?": '{"start": "2023-07-02", "end": "2023-07-09"}',
}


def test_replies_become_windows_and_what_cannot_be_read_is_counted(tmp_path):
    chat = ScriptedChat(lambda p: REPLIES[inside(p.messages[-1].content, "QUESTION")])
    with pytest.warns(UserWarning, match="2 of 6 windows could not be read"):
        after = done(LLMWindows(chat=chat), TALK, Store(tmp_path))
    assert after["queries"]["window"].to_list() == [
        [datetime(2023, 6, 30), datetime(2023, 6, 30)], None, None, None,
        [datetime(2023, 6, 20), datetime(2023, 7, 1)], None]
    assert all("Today is Saturday 1 July 2023." in p.messages[-1].content for p in chat.asked)


def test_a_question_is_asked_about_once_and_never_without_a_day(tmp_path):
    chat = ScriptedChat(lambda p: '{"start": null, "end": null}')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        twice = asked("Who is Ann?", "Who is Ann?")
        after = done(LLMWindows(chat=chat), twice, Store(tmp_path))
        done(LLMWindows(chat=chat), asked("Who is Ann?", on=None), Store(tmp_path))
    assert len(chat.asked) == 1
    assert after.digest(twice) == twice.digest(twice)
