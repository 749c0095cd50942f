"""Slack's export: channels by days, threads, edits, deleted messages and people, bots, joins, marked-up text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memlab.data.chats.conversation import Tally
from memlab.data.chats.slack_texts import People
from tests.chat_exports import pack, read, write

ANN, BOB, LEFT, BOT = "U0ANN", "U0BOB", "U0LEFT", "U0BOT"
USERS = [
    {"id": ANN, "name": "ann", "deleted": False, "profile": {"display_name": "Ann 🐈", "real_name": "Ann Smith"}},
    {"id": BOB, "name": "bob", "deleted": False, "profile": {"display_name": "", "real_name": "Bob Jones"}},
    {"id": LEFT, "name": "eve", "deleted": True, "profile": {"real_name": "Eve Gone"}},
    {"id": BOT, "name": "ci", "is_bot": True, "profile": {"real_name": "CI"}},
]
CHANNELS = [{"id": "C1", "name": "general", "members": [ANN, BOB]}]
DAY1, DAY2 = 1709286000, 1709372400  # 2024-03-01 and 2024-03-02, 09:40 UTC


def said(at: float, user: str | None, text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "ts": f"{at:.6f}", "text": text} | ({"user": user} if user else {}) | fields


EXPORT = {
    "users.json": USERS, "channels.json": CHANNELS, "integration_logs.json": [{"user_id": ANN}],
    "dms.json": [{"id": "D1", "members": [ANN, BOB]}],
    "general/2024-03-01.json": [
        said(DAY1 - 9, ANN, "<@U0ANN> has joined the channel", subtype="channel_join"),
        said(DAY1, ANN, "Hi <@U0BOB>, see <https://x.org/a|the plan> &amp; <#C1|general> <!here> :tada:"),
        said(DAY1 + 60, BOB, "Lunch at one (edited)", edited={"user": BOB, "ts": "1709286100.000000"}),
        said(DAY1 + 90, BOB, "Where do we ship?", thread_ts=f"{DAY1 + 90:.6f}", reply_count=2),
        said(DAY1 + 120, ANN, "To Rome.", thread_ts=f"{DAY1 + 90:.6f}", parent_user_id=BOB),
        said(DAY1 + 150, None, "", subtype="bot_message", username="deploy", bot_id="B1",
             attachments=[{"fallback": "Build 7 failed", "text": "Build <https://x.org/7> failed"}]),
        said(DAY1 + 160, BOT, "Build fixed"),
        said(DAY1 + 170, ANN, "This message was deleted.", subtype="tombstone"),
    ],
    "general/2024-03-02.json": [
        said(DAY2, LEFT, "I leave on Friday 👋", files=[{"name": "cat.png", "mimetype": "image/png"},
                                                        {"name": "a.pdf", "mimetype": "application/pdf"},
                                                        {"mode": "tombstone"}]),
        said(DAY2 + 10, BOB, "No, to Oslo.", thread_ts=f"{DAY1 + 90:.6f}", subtype="thread_broadcast"),
        said(DAY2 + 20, "U0NEW", "I am new", user_profile={"real_name": "Nina"}),
        said(DAY2 + 30, ANN, "new topic", subtype="channel_topic", reactions=[{"name": "eyes", "count": 2}]),
        said(DAY2 + 40, None, "nice", subtype="file_comment", comment={"user": BOB}, reactions=[{"count": 2}]),
    ],
    "D1/2024-03-02.json": [said(DAY2, ANN, "psst, <@U0NOBODY>")],
}
GENERAL_1 = ("2024-03-01 general", "2024-03-01 09:40", [
    ("user", "Ann 🐈", "Hi @Bob Jones, see the plan (https://x.org/a) & #general @here :tada:"),
    ("user", "Bob Jones", "Lunch at one (edited)"),
    ("assistant", "deploy", "Build https://x.org/7 failed"),
    ("assistant", "CI", "Build fixed"),
])
THREAD = ("2024-03-01 general, thread: Where do we ship?", "2024-03-01 09:41", [
    ("user", "Bob Jones", "Where do we ship?"), ("user", "Ann 🐈", "To Rome."), ("user", "Bob Jones", "No, to Oslo.")])
DIRECT = ("2024-03-02 Ann 🐈, Bob Jones", "2024-03-02 09:40", [("user", "Ann 🐈", "psst, @U0NOBODY")])
GENERAL_2 = ("2024-03-02 general", "2024-03-02 09:40", [
    ("user", "Eve Gone", "I leave on Friday 👋\n[image: cat.png]\n[file: a.pdf]\n[file]"),
    ("user", "Nina", "I am new"), ("user", "Bob Jones", "nice")])


def test_channels_by_days_and_threads_whole_turn_by_turn(tmp_path: Path) -> None:
    rows, counts, _ = read(write(tmp_path, EXPORT))
    assert rows == [GENERAL_1, THREAD, DIRECT, GENERAL_2]
    assert counts == {
        "edited messages, taken as they are now": 1,
        "ids of people whom users.json does not name": 1, "messages of bots, under the role assistant": 2,
        "notices left out (channel_join, channel_topic, tombstone)": 3, "reactions left out": 2,
        "sessions that run over several days, dated by their first message (--split day cuts them)": 1}


def test_a_zip_gives_the_same_and_days_cut_threads_on_demand(tmp_path: Path) -> None:
    path = pack(tmp_path / "export.zip", dict(reversed(EXPORT.items())))
    assert read(path)[0] == [GENERAL_1, THREAD, DIRECT, GENERAL_2]
    rows, *_ = read(path, split="day")
    assert [turns for name, _, turns in rows if "thread" in name] == [THREAD[2][:2], THREAD[2][2:]]


def test_a_change_and_a_deletion_as_events(tmp_path: Path) -> None:
    rows, counts, _ = read(write(tmp_path, {"x/2024-03-01.json": [
        said(DAY1, ANN, "one"), said(DAY1 + 1, ANN, "two"),
        {"type": "message", "subtype": "message_changed", "ts": "1709286009.0", "message": said(DAY1, ANN, "uno")},
        {"type": "message", "subtype": "message_deleted", "ts": "1709286010.0", "deleted_ts": f"{DAY1 + 1:.6f}"},
        said(DAY1 + 2, ANN, "three"), said(DAY1 + 2, ANN, "three")]}))
    assert [turn[2] for turn in rows[0][2]] == ["uno", "three"]
    assert rows[0][2][0][1] == ANN
    assert counts["deleted messages left out"] == counts["edited messages, taken as they are now"] == 1
    assert counts["messages that occur twice, taken once"] == 1


def test_messages_without_a_timestamp_or_with_a_number_stay_in_their_order(tmp_path: Path) -> None:
    spoken = [said(DAY1, ANN, "one"), {"type": "message", "user": BOB, "text": "two"},
              {"type": "message", "user": ANN, "text": "three", "ts": ""}, {**said(DAY1, BOB, "four"), "ts": DAY1 + 5},
              {**said(DAY1, BOB, "five"), "ts": DAY1 + 6.5, "thread_ts": DAY1 + 5}]
    rows, counts, _ = read(write(tmp_path, {"users.json": USERS, "x/2024-03-01.json": spoken}))
    assert rows == [
        ("2024-03-01 x", "2024-03-01 09:40", [
            ("user", "Ann 🐈", "one"), ("user", "Bob Jones", "two"), ("user", "Ann 🐈", "three")]),
        ("2024-03-01 x, thread: four", "2024-03-01 09:40", [
            ("user", "Bob Jones", "four"), ("user", "Bob Jones", "five")])]
    assert not counts
    (day,) = read(write(tmp_path / "bare", {"x/2024-03-02.json": [{**m, "ts": None} for m in spoken[:2]]}))[0]
    assert (day[1], [turn[2] for turn in day[2]]) == ("2024-03-02 00:00", ["one", "two"])


def test_two_people_of_one_name_are_told_apart(tmp_path: Path) -> None:
    users = [{"id": "U1", "name": "ann", "profile": {"real_name": "Ann"}},
             {"id": "U2", "name": "ann2", "profile": {"real_name": "Ann"}}]
    rows, *_ = read(write(tmp_path, {"users.json": users, "x/2024-03-01.json": [
        said(DAY1, "U1", "a"), said(DAY1 + 1, "U2", "b")]}))
    assert [speaker for _, speaker, _ in rows[0][2]] == ["Ann (ann)", "Ann (ann2)"]


@pytest.mark.parametrize(("raw", "plain"), [("a &lt;b&gt; &amp; c", "a <b> & c"), ("&#" + "1" * 5000 + ";",) * 2])
def test_an_entity_is_a_letter_unless_its_number_has_no_end(raw: str, plain: str) -> None:
    assert People([], Tally()).plain(raw) == plain
