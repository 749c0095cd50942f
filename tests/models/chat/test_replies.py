from __future__ import annotations

from memlab.models.chat.replies import parse_json, trim
from memlab.models.protocols import Completion
from tests.chats import ScriptedChat

SCHEMA = '{"type": "object", "properties": {"k": {"type": "integer"}}, "required": ["k"]}'


def test_a_text_is_cut_only_where_it_must_be() -> None:
    chat = ScriptedChat(lambda p: "")
    assert trim(chat, "one two three", 3) == "one two three"
    cut = trim(chat, "one two three four five six", 3)
    assert "one two three four".startswith(cut)
    assert 2 <= chat.count(cut) <= 3
    assert trim(chat, "one", 0) == trim(chat, "one", -5) == ""


def test_json_is_read_out_of_words_and_only_if_it_fits() -> None:
    def read(text: str) -> object:
        return parse_json(Completion(text, 0, 0, 0.0), SCHEMA)

    assert read('{"k": 3}') == read('Of course!\n```json\n{"k": 3}\n```') == {"k": 3}
    assert [read(t) for t in ("", "3", '{"k": "3"}', '{"k": 3', "{}")] == [None] * 5
