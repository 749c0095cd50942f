"""WhatsApp's export: three styles of dates, messages of several lines, notices, attachments, and the order of dates."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.chats.whatsapp import DateOrder, date_order, moment, split_line
from memlab.errors import MemlabError
from tests.chat_exports import read, write

ANDROID_24 = """31/12/2023, 21:15 - Messages and calls are end-to-end encrypted. Tap for more.
31/12/2023, 21:15 - Ann: Happy new year 🎉
to all of you:

- Bob
- 12:30 at the lake
31/12/2023, 21:16 - Bob: <Media omitted>
31/12/2023, 21:17 - Bob: IMG-20231231-WA0001.jpg (file attached)
The lake
31/12/2023, 21:18 - Ann changed the subject from "Trip: Rome" to "Lake"
31/12/2023, 21:19 - +39 333 1234567: This message was deleted
01/01/2024, 00:05 - Ann: See https://x.org: it is open <This message was edited>
01/01/2024, 00:06 - Bob left
"""
ANDROID_12 = ANDROID_24.replace("31/12/2023", "12/31/23").replace("01/01/2024", "1/1/24").replace(
    "21:1", "9:1").replace(" - ", "\u202fPM - ").replace("00:05\u202fPM", "12:05\u202fAM").replace(
    "00:06\u202fPM", "12:06\u202fAM")
IOS = """\ufeff[31.12.23, 21:15:01] Lake: \u200eMessages and calls are end-to-end encrypted.
[31.12.23, 21:15:04] Ann: Happy new year 🎉
to all of you:

- Bob
- 12:30 at the lake
\u200e[31.12.23, 21:16:00] Bob: \u200eimage omitted
\u200e[31.12.23, 21:17:00] ~\u202fBob: \u200e<attached: 00000012-PHOTO-2023-12-31.jpg>
[31.12.23, 21:18:00] Lake: \u200eAnn changed the group name to "Lake"
[31.12.23, 21:19:00] \u202a+39\u00a0333\u00a01234567\u202c: \u200eThis message was deleted.
[01.01.24, 00:05:59] Ann: See https://x.org: it is open \u200e<This message was edited>
"""
NEW_YEAR = ("user", "Ann", "Happy new year 🎉\nto all of you:\n\n- Bob\n- 12:30 at the lake")
OPEN = ("2024-01-01", "2024-01-01 00:05", [("user", "Ann", "See https://x.org: it is open")])


@pytest.mark.parametrize(("text", "order"), [(ANDROID_24, "day/month/year"), (ANDROID_12, "month/day/year")])
def test_android_turn_by_turn(tmp_path: Path, text: str, order: str) -> None:
    name = "WhatsApp Chat with Lake.txt"
    rows, counts, remarks = read(write(tmp_path, {name: text, "IMG-20231231-WA0001.jpg": b"\xff\xd8"}))
    assert rows == [
        ("2023-12-31 Lake", "2023-12-31 21:15", [
            NEW_YEAR, ("user", "Bob", "[media]"), ("user", "Bob", "[image: IMG-20231231-WA0001.jpg]\nThe lake")]),
        ("2024-01-01 Lake", *OPEN[1:])]
    assert counts == {"notices left out (encryption, joins, subjects)": 3, "deleted messages left out": 1,
                      "edited messages, taken as they are now": 1}
    assert remarks == [f"{name}: dates are read as {order}, since the other order gives days that do not exist"]


def test_ios_turn_by_turn(tmp_path: Path) -> None:
    rows, counts, _ = read(write(tmp_path, {"_chat.txt": IOS.replace("\n", "\r\n")}) / "_chat.txt")
    assert rows == [
        ("2023-12-31 WhatsApp chat", "2023-12-31 21:15", [
            NEW_YEAR, ("user", "Bob", "[image]"), ("user", "Bob", "[image: 00000012-PHOTO-2023-12-31.jpg]")]),
        ("2024-01-01 WhatsApp chat", *OPEN[1:])]
    assert counts == {"notices left out (encryption, joins, subjects)": 2, "deleted messages left out": 1,
                      "edited messages, taken as they are now": 1}


def test_silence_cuts_on_demand(tmp_path: Path) -> None:
    path = write(tmp_path, {"a.txt": ANDROID_24})
    assert [len(turns) for _, _, turns in read(path, split="2h")[0]] == [3, 1]
    assert [len(turns) for _, _, turns in read(path, split="3h")[0]] == [4]


@pytest.mark.parametrize(("lines", "order", "reason"), [
    (["13/1/24, 10:00 - A: x"], DateOrder.DAY_FIRST, "do not exist"),
    (["1/13/24, 10:00 - A: x"], DateOrder.MONTH_FIRST, "do not exist"),
    (["1/2/24, 10:00 - A: x", "12/2/24, 10:00 - A: x", "1/3/24, 10:00 - A: x"], DateOrder.DAY_FIRST, "before earlier"),
    (["2/1/24, 10:00 - A: x", "2/12/24, 10:00 - A: x", "3/1/24, 10:00 - A: x"], DateOrder.MONTH_FIRST, "before"),
    (["1/2/24, 10:00 - A: x"], DateOrder.DAY_FIRST, "allows both"),
    (["1/2/24, 10:00 AM - A: x"], DateOrder.MONTH_FIRST, "allows both"),
    (["2024-02-01, 10:00 - A: x"], DateOrder.YEAR_FIRST, "year stands first"),
])
def test_the_order_of_dates_is_resolved_from_the_file(lines: list[str], order: DateOrder, reason: str) -> None:
    parts = [split_line(line) for line in lines]
    resolved, why = date_order(part for part in parts if part)
    assert resolved == order
    assert reason in why


def test_the_order_can_be_given(tmp_path: Path) -> None:
    path = write(tmp_path, {"a.txt": "1/2/24, 10:00 - A: x"})
    assert read(path)[0][0][1] == "2024-02-01 10:00"
    assert read(path, dates=DateOrder.MONTH_FIRST)[0][0][1] == "2024-01-02 10:00"
    with pytest.raises(MemlabError, match="no date can be read as month/day/year"):
        read(write(tmp_path, {"a.txt": "13/2/24, 10:00 - A: x"}), dates=DateOrder.MONTH_FIRST)


def test_a_date_of_another_style_or_no_date_is_part_of_the_message(tmp_path: Path) -> None:
    text = "13/1/24, 10:00 - A: x\n[13/1/24, 10:00:00] B: quoted\n13/1/24, 27:00 - C: no time\n"
    assert read(write(tmp_path, {"a.txt": text}))[0][0][2] == [
        ("user", "A", "x\n[13/1/24, 10:00:00] B: quoted\n13/1/24, 27:00 - C: no time")]


@given(st.datetimes(min_value=datetime(2009, 1, 1),
                    max_value=datetime(2099, 12, 31)))
def test_every_style_of_a_moment_is_read_back(at):
    half, hour = "AP"[at.hour >= 12], at.hour % 12 or 12
    for line, order in (
        (f"{at.day}/{at.month}/{at:%y}, {at:%H:%M} - A: x", DateOrder.DAY_FIRST),
        (f"{at.month}/{at.day}/{at:%Y}, {hour}:{at:%M}\u202f{half}M - A: x", DateOrder.MONTH_FIRST),
        (f"\u200e[{at:%d.%m.%y}, {hour}:{at:%M}:00 {half.lower()}.m.] A: x", DateOrder.DAY_FIRST),
        (f"[{at:%Y-%m-%d} {at:%H:%M:00}] A: x", DateOrder.YEAR_FIRST),
    ):
        parts = split_line(line)
        assert parts is not None
        assert moment(parts, order) == at.replace(second=0, microsecond=0)
