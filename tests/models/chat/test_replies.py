from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from memlab.models.chat.protocol import Completion, Message, Prompt
from memlab.models.chat.replies import json_in, listed, note, tell, told, trimmed
from memlab.store import Store
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


def test_what_is_told_and_what_is_noted_is_counted() -> None:
    before = told.copy()
    with pytest.warns(UserWarning, match="2 of 8 replies were lost; those are none"):
        tell(2, 8, "replies were lost; those are none")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        note(1, 4, "replies were lost; another consequence")
        note(0, 9, "replies were found")
    assert listed(told - before) == {"replies were lost": {"number": 3, "of": 12}}


def test_a_store_notes_what_was_refused_cut_off_and_mended(tmp_path: Path) -> None:
    class Odd(ScriptedChat):
        def complete(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Completion]]:
            yield 0, Completion("", 0, 0, 0.0, "refused")
            yield 1, Completion("The", 1, 1, 0.1, "length")
            yield 2, Completion("{}", 1, 1, 0.1, repaired=True)
            yield 3, Completion("all well", 1, 1, 0.1)

    asked = [Prompt((Message("user", f"{i}"),)) for i in range(4)]
    before = told.copy()
    Store(tmp_path).completions(Odd(lambda p: "", name="odd"), asked)
    counts = listed(told - before)
    assert {what.split()[3]: n for what, n in counts.items()} == dict.fromkeys(
        ("refused,", "cut", "to"), {"number": 1, "of": 4})
    before = told.copy()
    Store(tmp_path).completions(ScriptedChat(lambda p: "", name="odd"), asked[1:3])  # found: the same is known of it
    assert sorted(n["number"] for n in listed(told - before).values()) == [1, 1]
