"""WhatsApp's export: the order of dates, their forms, and the words of the app in many languages."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from memlab.data.chats.whatsapp import split_line
from memlab.data.chats.whatsapp_dates import DateOrder, DateReading, read_moments
from memlab.support.errors import MemlabError
from tests.chat_exports import read, write

QUOTE = "[22/01/24, 10:00:00] Bob: Look:\n[21/01/24, 09:00:00] Carla: I quit\nCrazy!\r\n[22/01/24, 10:01:00] Alice: Wow"


@pytest.mark.parametrize("end", ["", "\r\n", "\r\n\r\n", "\r\n[23/01/24, 10:01:00] Bob: Yes\r\n"])
def test_a_line_that_a_message_of_an_iphone_quotes_is_no_message(tmp_path: Path, end: str) -> None:
    rows, *_ = read(write(tmp_path, {"_chat.txt": QUOTE + end}))
    assert rows[0][1:] == ("2024-01-22 10:00", [
        ("user", "Bob", "Look:\n[21/01/24, 09:00:00] Carla: I quit\nCrazy!"), ("user", "Alice", "Wow")])
    assert [turns for *_, turns in rows[1:]] == ([[("user", "Bob", "Yes")]] if "23/01" in end else [])


def reading(lines: list[str], order: DateOrder | None = None) -> DateReading:
    parts = [split_line(line) for line in lines]
    return read_moments([part.stamp for part in parts if part], order)


@pytest.mark.parametrize(("lines", "order", "reason"), [
    (["13/1/24, 10:00 - A: x"], DateOrder.DAY_FIRST, "do not exist"),
    (["1/13/24, 10:00 - A: x"], DateOrder.MONTH_FIRST, "do not exist"),
    (["1/2/24, 10:00 - A: x", "12/2/24, 10:00 - A: x", "1/3/24, 10:00 - A: x"], DateOrder.DAY_FIRST, "before earlier"),
    (["2/1/24, 10:00 - A: x", "2/12/24, 10:00 - A: x", "3/1/24, 10:00 - A: x"], DateOrder.MONTH_FIRST, "before"),
    (["5/9/24, 10:00 - A: x", "5/10/24, 10:00 - A: x"], DateOrder.MONTH_FIRST, "closest together"),
    (["1/2/24, 10:00 - A: x"], DateOrder.DAY_FIRST, "several orders"),
    (["1/2/24, 10:00 AM - A: x"], DateOrder.MONTH_FIRST, "several orders"),
    (["01/02/2024, 10:00 AM - A: x"], DateOrder.DAY_FIRST, "several orders"),
    (["2024-02-01, 10:00 - A: x"], DateOrder.YEAR_FIRST, "year stands first"),
    (["24. 2. 1. 오전 10:00 - A: x", "24. 2. 2. 오전 10:00 - A: x"], DateOrder.YEAR_FIRST, "do not exist"),
    (["5. märz 2024, 10:00 - A: x"], DateOrder.DAY_FIRST, "no other order"),
])
def test_the_order_of_dates_is_resolved_from_the_file(lines: list[str], order: DateOrder, reason: str) -> None:
    found = reading(lines)
    assert found.order == order
    assert reason in found.reason


def test_the_order_can_be_given(tmp_path: Path) -> None:
    path = write(tmp_path, {"a.txt": "1/2/24, 10:00 - A: x"})
    assert read(path)[0][0][1] == "2024-02-01 10:00"
    assert read(path, dates=DateOrder.MONTH_FIRST)[0][0][1] == "2024-01-02 10:00"
    with pytest.raises(MemlabError, match="no date can be read as month/day/year"):
        read(write(tmp_path, {"a.txt": "13/2/24, 10:00 - A: x"}), dates=DateOrder.MONTH_FIRST)


def test_a_date_of_another_style_or_no_date_is_part_of_the_message(tmp_path: Path) -> None:
    text = "13/1/24, 10:00 - A: x\n[13/1/24, 10:00:00] B: quoted\n13/1/24, 27:00 - C: y"
    rows, counts, _ = read(write(tmp_path, {"a.txt": text}))
    assert rows[0][2] == [("user", "A", text.removeprefix("13/1/24, 10:00 - A: "))]
    assert counts == {"lines dated in another form, kept as text": 1}


@pytest.mark.parametrize(("line", "moment"), [
    ("28/3/2025, 9:29 p.\u00a0m. - A: x", "2025-03-28 21:29"),
    ("\u200f٥/٣/٢٠٢٤، ٨:٢٨ م - A: x", "2024-03-05 20:28"),
    ("2024년 3월 5일 오후 8:28, A: x", "2024-03-05 20:28"),
    ("[2024. 3. 5. 오전 12:01:11] A: x", "2024-03-05 00:01"),
    ("2024/3/5 下午8:28 - A: x", "2024-03-05 20:28"), ("2024/3/5 凌晨12:28 - A: x", "2024-03-05 00:28"),
    ("2024/3/5 中午12:28 - A: x", "2024-03-05 12:28"), ("2024/3/5 晚上11:28 - A: x", "2024-03-05 23:28"),
    ("5.03.24 г., 20:28 ч. - A: x", "2024-03-05 20:28"), ("5/3/24, 8:28 μ.μ. - A: x", "2024-03-05 20:28"),
    ("[20:28:01, 5/3/24] A: x", "2024-03-05 20:28"), ("20:28, 5 Mar 2024 - A: x", "2024-03-05 20:28"),
    ("2024-03-05 20 h 28 - A: x", "2024-03-05 20:28"), ("05.03.24, 8:28 nachm. - A: x", "2024-03-05 20:28"),
    ("5/3/2567 20:28 - A: x", "2024-03-05 20:28"), ("[5/3/67 20:28:01] A: x", "2024-03-05 20:28"),
    ("[5/3/2567 BE, 20:28:01] A: x", "2024-03-05 20:28"), ("[5/3/R6, 20:28:01] A: x", "2024-03-05 20:28"),
    ("5/3/24 20:28:01: A: x", "2024-03-05 20:28"),
    ("03/01/2021, 9:15 in the morning - A: x", "2021-01-03 09:15"), ("৫/৩/২৪, ৮:২৮ PM - A: x", "2024-03-05 20:28"),
    ("5.3.24, 8:28 - A: x - y", "2024-03-05 08:28"), ("Mar 5, 8:11 PM - A: x", None), ("12345, 8:28 - A: x", None),
])
def test_dates_as_phones_write_them(line: str, moment: str | None) -> None:
    if moment is None:
        assert split_line(line) is None
        return
    part = split_line(line)
    assert part is not None
    assert part.text.startswith("A: x")
    found = {order: read_moments([part.stamp], order).moments[0] for order in part.stamp.orders}
    wanted = datetime.fromisoformat(moment)
    assert wanted in {at.replace(second=0) for at in found.values() if at}


def test_a_chat_that_no_pattern_fits_is_refused_in_words(tmp_path: Path) -> None:
    text = "Quintidi 5 Ventôse 232, 20:28 - A: x\nQuintidi 5 Ventôse 232, 20:29 - B: y\n"
    with pytest.raises(MemlabError, match="a form that memlab does not know.*begins 'Quintidi 5"):
        read(write(tmp_path, {"WhatsApp Chat with B.txt": text}))
    with pytest.raises(MemlabError, match="a form that memlab does not know.*begins 'Mar 5, 8:11 PM"):
        read(write(tmp_path / "short", {"_chat.txt": "Mar 5, 8:11 PM - A: x\nMar 5, 8:12 PM - B: y\n"}))
    with pytest.raises(MemlabError, match="Gregorian calendar"):
        read(write(tmp_path / "other", {"a.txt": "٥/٣/١٤٤٥، ٨:٢٨ م - A: x"}))


@pytest.mark.parametrize(("body", "text"), [
    ("<Multimedia omitido>", "[media]"), ("<Без медиафайлов>", "[media]"),
    ("PTT-20250328-WA0014.opus (archivo adjunto)", "[audio: PTT-20250328-WA0014.opus]"),
    ("\u200eIMG-20250328-WA0014.jpg (words of another language)\nZürich", "[image: IMG-20250328-WA0014.jpg]\nZürich"),
    ("Alex.vcf (my cousin)", "Alex.vcf (my cousin)"), ("me mudo a Lima <Se editó este mensaje.>", "me mudo a Lima"),
    ("tak <Ta wiadomość została zmieniona>", "tak"), ("I <3 <b>", "I <3 <b>"), ("media omitted", "media omitted"),
    ("Se eliminó este mensaje", None), ("삭제된 메시지입니다.", None), ("Данное сообщение удалено", None),
    ("Missed voice call", None), ("Llamada perdida", None),
])
def test_words_of_the_app_on_android(tmp_path: Path, body: str, text: str | None) -> None:
    rows, _, _ = read(write(tmp_path, {"a.txt": f"13/1/24, 10:00 - A: first\n13/1/24, 10:01 - B: {body}\n"}))
    assert rows[0][2] == [("user", "A", "first"), *([("user", "B", text)] if text else [])]


@pytest.mark.parametrize(("lead", "body", "text"), [
    ("\u200e", "\u200eBild weggelassen", "[image]"), ("\u200e", "\u200eзображення відсутнє", "[image]"),
    ("\u200f", " \u200f<المُرفق: 00000035-PHOTO-2022-03-27.jpg>", "[image: 00000035-PHOTO-2022-03-27.jpg]"),
    ("", "\u200eLocation: https://maps.google.com/?q=51.5,-0.1", "Location: https://maps.google.com/?q=51.5,-0.1"),
    ("", "so \u200e<words of another language>", "so"), ("", "\u200eIhr Sicherheitscode ist neu.", None),
    ("", "\u200eข้อความนี้ถูกลบแล้ว", None), ("", "\u200eTin nhắn này đã bị xóa.", None),
])
def test_words_of_the_app_on_iphones(tmp_path: Path, lead: str, body: str, text: str | None) -> None:
    chat = f"[13/1/24, 10:00:00] A: first\n{lead}[13/1/24, 10:01:00] B: {body}\n"
    rows, _, _ = read(write(tmp_path, {"a.txt": chat}))
    assert rows[0][2] == [("user", "A", "first"), *([("user", "B", text)] if text else [])]
