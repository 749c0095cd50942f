"""Exports that overlap: each conversation once, in its latest version; names of people and titles of sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.chat_exports import Rows, T, conversation, node, read, write

START = [node("q", None, "user", "I start at Acme."), node("a", "q", "assistant", "Congrats", at=T + 10)]
MORE = [*START, node("p", "a", "user", "I quit.", at=T + 20), node("b", "p", "assistant", "Oh", at=T + 30)]
TWICE = "conversations that occur twice, taken once"
NAMES = ("علی\u200cرضا", "शर्\u200dमा", "Ann \U0001f469\u200d\U0001f4bb")


def job(nodes: list[Any], current: str, key: str = "id-1", title: str = "Job") -> dict[str, Any]:
    return {**conversation(title, *nodes, current=current), "conversation_id": key}


def texts(rows: Rows) -> list[list[str]]:
    return [[text for _, _, text in turns] for _, _, turns in rows]


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_two_exports_that_overlap_give_each_conversation_once(tmp_path: Path, order: str) -> None:
    folder = write(tmp_path, {f"{order[0]}/conversations.json": [job(START, "a")],
                              f"{order[1]}/conversations.json": [job(MORE, "b", title="Acme")]})
    rows, counts, _ = read(folder)
    assert [row[0] for row in rows] == ["2024-03-01 Acme"]
    assert texts(rows) == [["I start at Acme.", "Congrats", "I quit.", "Oh"]]
    assert counts[TWICE] == 1


def line(role: str, text: str, at: int | None) -> dict[str, Any]:
    return {"role": role, "content": text, **({"timestamp": at} if at else {})}


def test_without_ids_copies_have_the_same_messages_and_times(tmp_path: Path) -> None:
    chat = [line("user", "Hi", T), line("assistant", "Yes?", T + 1), line("user", "Bye", T + 2)]
    undated = [line("user", "Hi", None)]
    files = {"a.json": chat, "b.json": chat, "c.json": chat[:2], "d.json": undated, "e.json": undated}
    rows, counts, _ = read(write(tmp_path, {name: {"messages": content} for name, content in files.items()}))
    assert sorted(texts(rows)) == [["Hi"], ["Hi"], ["Hi", "Yes?"], ["Hi", "Yes?", "Bye"]]
    assert counts[TWICE] == 1


def test_two_exports_of_a_chat_are_joined_where_they_share_messages(tmp_path: Path) -> None:
    lines = [f"31/12/23, 21:1{n} - {'Ann' if n % 2 else 'Ben'}: {'ok' if n == 3 else n}" for n in range(6)]
    files = {"a/WhatsApp Chat with Ann.txt": "\n".join(lines[:4]),
             "b/WhatsApp Chat with Ann.txt": "\n".join(lines[2:])}
    rows, counts, _ = read(write(tmp_path / "one", files))
    assert texts(rows) == [["0", "1", "2", "ok", "4", "5"]]
    assert counts[TWICE] == 1
    apart = {**files, "b/WhatsApp Chat with Ann.txt": "31/12/23, 21:15 - Ann: Hello"}
    assert len(read(write(tmp_path / "two", apart))[0]) == 2


@pytest.mark.parametrize("name", NAMES)
def test_joiners_stay_in_names_and_titles_and_other_marks_leave_no_blank(tmp_path: Path, name: str) -> None:
    message = {"role": "user", "content": "Hi", "name": f"\u200f{name}\u2069"}
    rows, *_ = read(write(tmp_path, {"a.json": {"title": name, "messages": [message]}}))
    assert rows == [(name, None, [("user", name, "Hi")])]
