"""Sessions made of conversations: names of people and titles, and silence in nights when clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from memlab.chats.conversation import ChatMessage, Conversation, Tally
from memlab.chats.sessions import to_sessions
from tests.chat_exports import read, write

ROME = ZoneInfo("Europe/Rome")


@pytest.mark.parametrize(("day", "hour"), [("2024-03-31", 0), ("2024-10-27", 0), ("2024-06-10", 0)])
@pytest.mark.parametrize(("minutes", "parts"), [(30, 1), (59, 1), (60, 2), (75, 2)])
def test_silence_is_measured_in_time_that_passes(day: str, hour: int, minutes: int, parts: int) -> None:
    start = datetime.fromisoformat(day).replace(hour=hour, minute=40, tzinfo=UTC)  # clocks in Rome change at 01:00 UTC
    said = [ChatMessage("user", "x", None, at) for at in (start, start + timedelta(minutes=minutes))]
    sessions = to_sessions([Conversation("x", said)], "1h", ROME, Tally())
    assert len(sessions) == parts


def test_silence_between_local_times_and_dates(tmp_path: Path) -> None:
    hello = {"role": "user", "content": "Hi"}
    times = ("2024-06-10", "2024-06-10T00:30", "2024-06-10T02:00")
    export = [{**hello, "time": time} for time in times]
    rows, *_ = read(write(tmp_path, {"a.json": export}), split="1h", zone="Europe/Rome")
    assert [len(turns) for *_, turns in rows] == [2, 1]


NAMES = ("علی\u200cرضا", "शर्\u200dमा", "Ann \U0001f469\u200d\U0001f4bb")


@pytest.mark.parametrize("name", NAMES)
def test_joiners_stay_in_names_and_titles(tmp_path: Path, name: str) -> None:
    message = {"role": "user", "content": "Hi", "name": name}
    rows, *_ = read(write(tmp_path, {"a.json": {"title": name, "messages": [message]}}))
    assert rows == [(name, None, [("user", name, "Hi")])]


def test_marks_that_nobody_sees_leave_no_blank_in_a_name(tmp_path: Path) -> None:
    message = {"role": "user", "content": "Hi", "name": "\u200fAnn\u00adMa\u200brie\u2069"}
    assert read(write(tmp_path, {"a.json": [message]}))[0][0][2] == [("user", "AnnMarie", "Hi")]
