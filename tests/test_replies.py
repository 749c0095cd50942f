from __future__ import annotations

import warnings

import pytest

from memlab.models.chat import Completion
from memlab.replies import json_in, tell, trimmed
from tests.chats import ScriptedChat

SCHEMA = '{"type": "object", "properties": {"k": {"type": "integer"}}, "required": ["k"]}'


def test_a_text_is_cut_only_where_it_must_be() -> None:
    chat = ScriptedChat(lambda p: "")
    assert trimmed(chat, "one two three", 3) == "one two three"
    cut = trimmed(chat, "one two three four five six", 3)
    assert "one two three four".startswith(cut)
    assert 2 <= chat.count(cut) <= 3
    assert trimmed(chat, "one", 0) == trimmed(chat, "one", -5) == ""


def test_json_is_read_out_of_words_and_only_if_it_fits() -> None:
    def read(text: str) -> object:
        return json_in(Completion(text, 0, 0, 0.0), SCHEMA)

    assert read('{"k": 3}') == read('Of course!\n```json\n{"k": 3}\n```') == {"k": 3}
    assert [read(t) for t in ("", "3", '{"k": "3"}', '{"k": 3', "{}")] == [None] * 5


def test_nothing_is_told_where_nothing_went_wrong() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tell(0, 7, "replies were lost")
    with pytest.warns(UserWarning, match="1,000 of 2,000 replies were lost"):
        tell(1000, 2000, "replies were lost")
