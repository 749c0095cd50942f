"""Every product of the table: its sample is recognised; messages, speakers, times, order and room are right."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from memlab.data.chats.conversation import to_sessions
from memlab.data.chats.formats import load
from memlab.support.errors import MemlabError
from tests.chat_exports import SAMPLES, write


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_of_each_product(tmp_path: Path, name: str) -> None:
    sample = SAMPLES[name]
    export = load(write(tmp_path, sample["files"]))
    assert export.format.name == sample.get("format", name)
    sessions = to_sessions(export.conversations, "day", ZoneInfo("UTC"), export.tally)
    assert [c.title for c in export.conversations] == sample.get("titles", [c.title for c in export.conversations])
    turns = [f"{m.said_on and format(m.said_on, '%H:%M')} {m.role} {m.speaker}: {m.text}"
             for s in sessions for m in s.turns]
    assert turns == sample["turns"]
    assert sorted({c.room for c in export.conversations}) == sample.get("rooms", [sample.get("room", "")])
    assert dict(export.tally.counts) == sample.get("counts", {})
    assert any(sample.get("remark", "") in remark for remark in ["", *export.tally.remarks])


OWN = """
formats:
  pager:
    product: Pager
    conversations: pages.*
    needs: [beeps.*.who]
    room: line
    people: true
    messages: beeps.*
    speaker: who
    text: words
"""
PAGES = {"pages": [{"line": "Ward 3", "beeps": [{"who": "Ann", "words": "Come.", "at": "2024-03-01 09:40"},
                                               {"words": "Why not?", "at": "2024-03-01 09:41", "nurse_name": "Eve"},
                                               {"who": "Bob", "at": "2024-03-01 09:42", "note": "I am on my way"}]}]}


def test_a_format_of_one_s_own(tmp_path: Path) -> None:
    write(tmp_path, {"x.json": PAGES, "mine.yaml": OWN, "wrong.yaml": OWN.replace("text:", "texts:")})
    export = load(tmp_path / "x.json", str(tmp_path / "mine.yaml"))
    (chat,) = export.conversations
    assert (chat.room, [(m.speaker, m.text) for m in chat.messages]) == (
        "Ward 3", [("Ann", "Come."), (None, "Why not?")])
    assert export.tally.counts == {
        "messages whose author is not named": 1, "messages without text left out": 1}
    for name, problem in (("wrong.yaml", r"formats\.pager\.texts: Extra inputs"), ("none.yaml", "no file of formats")):
        with pytest.raises(MemlabError, match=problem):
            load(tmp_path / "x.json", str(tmp_path / name))


@pytest.mark.parametrize(("name", "content", "problem"), [
    ("messages.html", '<div class="message default clearfix">', "Telegram's HTML, which is not read.* format JSON"),
    ("general.html", '<div class="chatlog__message">', "DiscordChatExporter.* --format Json"),
    ("chat.db", b"SQLite format 3\x00\xff\xff", "an SQLite database.* as JSON"),
    ("x.json", PAGES, r"no chat export that memlab knows: x\.json holds an object with pages"),
])
def test_what_is_not_read_is_named(tmp_path: Path, name: str, content: Any, problem: str) -> None:
    with pytest.raises(MemlabError, match=problem):
        load(write(tmp_path, {name: content}) / name)
