from __future__ import annotations

import time

from memlab.models.chat.replies import fault, parse_json, trim
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
    fences = '```json\n{"k": 3}\n```\nor rather\n```json\n{"k": %s}\n```'
    assert read(fences % "3") == {"k": 3}
    assert read(fences % "8") is None  # which one is meant is not known


def test_a_fault_in_every_item_takes_no_longer_than_in_a_few() -> None:
    start = time.process_time()
    message = fault(f"[{'0, ' * 200_000}0]", '{"type": "array", "items": {"type": "string"}}')
    assert message is not None
    assert message.endswith(']: expected type "string"')
    assert time.process_time() - start < 1.0


def test_a_number_that_json_does_not_have_is_a_fault() -> None:
    for number in ("NaN", "Infinity", "-Infinity"):
        assert fault(f"[{number}]", '{"items": {"minimum": 0, "maximum": 1}}') == f"no JSON ({number} is no number)"
