from __future__ import annotations

from memlab.stages.write.chunk import RoundChunker, TurnChunker
from memlab.stages.write.context import Header
from memlab.store import Store
from tests.stages.write.conversations import talk, written

CHAT = talk([("user", "I moved to Vancouver"), ("assistant", "Lovely."), ("user", "It rains"), ("assistant", "Yes.")])
PEOPLE = talk([("user", "Hello", "Ann"), ("user", "Hi Ann", "Bob")])


def keys(header, tables=CHAT, chunk=None):
    stage = chunk or TurnChunker()
    written_once = tables.updated(stage.run(tables, Store()))
    out = written_once.updated(header.run(written_once.only(header.reads), Store()))
    assert out["memories"].drop("key_id").equals(written_once["memories"].drop("key_id"))  # only the key changes
    return written(out)


def test_a_full_header_names_day_speaker_opening_and_previous_turn():
    assert keys(Header())[3] == (
        "Saturday 20 May 2023\nassistant\nConversation: user: I moved to Vancouver\nBefore: user: It rains\nYes.")


def test_nothing_is_said_twice():
    first, second, *_ = keys(Header())
    assert first == "Saturday 20 May 2023\nuser\nI moved to Vancouver"  # is the opening, follows nothing
    assert second.count("Vancouver") == 1  # the turn before is the opening
    assert keys(Header(first_user_turn=False))[1] == (
        "Saturday 20 May 2023\nassistant\nBefore: user: I moved to Vancouver\nLovely.")
    assert keys(Header(date=False), PEOPLE)[1] == "Conversation: Ann: Hello\nBob: Hi Ann"  # key names Bob already


def test_switches_and_limits():
    off = {"date": False, "speaker": False, "first_user_turn": False, "previous_turn": False}
    assert keys(Header(**off)) == ["I moved to Vancouver", "Lovely.", "It rains", "Yes."]
    assert keys(Header(**(off | {"previous_turn": True}), max_previous_chars=10))[3] == "Before: user: It r\nYes."
    assert keys(Header(**(off | {"speaker": True})), chunk=RoundChunker())[0] == (
        "user and assistant\nI moved to Vancouver Lovely.")
    assert keys(Header(**(off | {"previous_turn": True})),
                chunk=RoundChunker())[1].startswith("Before: assistant: Lovely.\n")


def test_a_session_does_not_look_into_the_one_before():
    two = talk([("user", "Hello")], [("assistant", "Back again?"), ("user", "Yes")])
    assert keys(Header(date=False, speaker=False), two) == [
        "Hello", "Conversation: user: Yes\nBack again?", "Before: assistant: Back again?\nYes"]


