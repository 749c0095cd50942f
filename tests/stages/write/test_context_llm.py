from __future__ import annotations

import pytest

from memlab.pipeline.tables import Tables
from memlab.pipeline.transcript import NOTE, render_turns
from memlab.stages.write.chunk import SessionChunker, TurnChunker
from memlab.stages.write.context import INSTRUCTION, Header, LLMContext, clean_reply
from memlab.store import Store
from tests.chats import ScriptedChat
from tests.fences import inside
from tests.stages.write.conversations import in_two_corpora, talk, written

CHAT = talk([("user", "I moved to Vancouver"), ("assistant", "Lovely."), ("user", "It rains"), ("assistant", "Yes.")])
DATE = Header(date=True, speaker=False, first_user_turn=False, previous_turn=False)


def passage(prompt) -> str:
    return inside(prompt.messages[-1].content, "PASSAGE")


def noted(prompt) -> str:
    return f"About {passage(prompt)!r}."


def after(stage, store: Store, tables: Tables = CHAT, chunk=None) -> Tables:
    chunked = tables.updated((chunk or TurnChunker()).run(tables, store))
    made = stage.run(chunked.only(stage.reads), store)
    assert set(made) - {"notes"} == set(stage.writes)
    out = chunked.updated(made)
    assert out["memories"].drop("key_id", "value_id").equals(chunked["memories"].drop("key_id", "value_id"))
    assert out["texts"].head(chunked["texts"].height).equals(chunked["texts"])
    return out


def test_note_and_header_stand_one_after_the_other(store: Store) -> None:
    out = after(LLMContext(chat=ScriptedChat(noted), header=DATE, into="key_and_value"), store)
    assert written(out)[2] == "About 'It rains'.\nSaturday 20 May 2023\nIt rains"
    assert written(out, "value")[2] == "About 'It rains'.\nuser: It rains"  # a header is never in the value


def test_the_session_comes_first_and_is_one_prefix_for_all_its_passages(store: Store) -> None:
    chat = ScriptedChat(noted)
    after(LLMContext(chat=chat), store)
    lines = render_turns(CHAT["turns"], CHAT["texts"])["display_text"]
    (system,) = {p.messages[0].content for p in chat.asked}
    assert system.startswith(INSTRUCTION + NOTE)
    assert inside(system, "CONVERSATION") == "\n\n".join(lines)
    assert {passage(p) for p in chat.asked} == {"I moved to Vancouver", "Lovely.", "It rains", "Yes."}


def test_a_passage_is_asked_about_once_in_however_many_haystacks(store: Store) -> None:
    two, chat = in_two_corpora(CHAT), ScriptedChat(noted)
    out = after(LLMContext(chat=chat), store, two)
    assert len(chat.asked) == 4
    assert written(out)[:4] == written(out)[4:]
    after(LLMContext(chat=chat, header=DATE), store, two)  # another arm asks nothing anew
    assert len(chat.asked) == 4


def test_a_memory_of_a_whole_session_is_not_asked_about(store: Store) -> None:
    chat = ScriptedChat(noted)
    out = after(LLMContext(chat=chat), store, chunk=SessionChunker(roles=("user",)))
    assert written(out) == ["I moved to Vancouver It rains"]
    assert chat.asked == []


def test_empty_and_refused_replies_leave_the_key_and_are_counted(store: Store) -> None:
    replies = {"Lovely.": " \x1b[0m\n", "It rains": "I'm sorry, I can't do that."}
    with pytest.warns(UserWarning, match="2 of 4 contexts came back empty or refused"):
        out = after(LLMContext(chat=ScriptedChat(lambda p: replies.get(passage(p), noted(p)))), store)
    assert written(out)[1:3] == ["Lovely.", "It rains"]
    assert written(out)[3] == "About 'Yes.'.\nYes."


def test_of_a_session_too_long_the_turns_around_the_passage_are_shown(store: Store) -> None:
    turns = [("user", f"Turn {n} " + "word " * 40) for n in range(30)]
    chat = ScriptedChat(noted, window=700)
    with pytest.warns(UserWarning, match="30 of 30 passages were asked about with only a part of their session"):
        after(LLMContext(chat=chat), store, talk(turns))
    assert len(chat.asked) == 30  # none was refused
    asked = next(p for p in chat.asked if passage(p).startswith("Turn 15 "))
    shown = [n for n in range(30) if f"user: Turn {n} " in asked.messages[0].content]
    assert shown == list(range(shown[0], shown[-1] + 1))
    assert len(shown) >= 3
    assert abs((shown[0] + shown[-1]) / 2 - 15) <= .5
    assert asked.messages[0].content.count("[...]") == 2


@pytest.mark.parametrize(("reply", "kept"), [
    ("One. Two. Three.", "One. Two."),
    ("Ann met Dr. Ray and Mr. B. Long in St. Ives. She liked it. More", "Ann met Dr. Ray and Mr. B. Long in St. Ives. "
                                                                         "She liked it."),
    ("It cost 3.50 dollars! Really?! Yes.", "It cost 3.50 dollars! Really?!"),
    ("  line\none\r\n\tand\x00 two\u202e \x1b]0;title\x07", "line one and two"),
    ('"Here is the note: Ann moved."', "Ann moved."),
    ('Sure! Here is the note:\n"Ann moved."', "Ann moved."),
    ("Note: Ann moved.", "Ann moved."),
    ("", ""), ("As an AI, I cannot see it.", ""), ("I can\u2019t say.", ""),
    ("no end in sight", "no end in sight"),
])
def test_replies_are_cleaned(reply: str, kept: str) -> None:
    assert clean_reply(reply, 2, 50) == kept
