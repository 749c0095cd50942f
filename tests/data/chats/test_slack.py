"""Slack's export: threads cut or whole, people of one name, entities, files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memlab.data.chats.conversation import Tally
from memlab.data.chats.slack_texts import People, file_text
from tests.chat_exports import SAMPLES, pack, read, write

DAY1 = 1709286000  # 2024-03-01, 09:40 UTC


def said(at: float, user: str | None, text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "ts": f"{at:.6f}", "text": text} | ({"user": user} if user else {}) | fields


def test_two_people_of_one_name_are_told_apart(tmp_path: Path) -> None:
    users = [{"id": "U1", "name": "ann", "profile": {"real_name": "Ann"}},
             {"id": "U2", "name": "ann2", "profile": {"real_name": "Ann"}}]
    rows, *_ = read(write(tmp_path, {"users.json": users, "x/2024-03-01.json": [
        said(DAY1, "U1", "a"), said(DAY1 + 1, "U2", "b")]}))
    assert [speaker for _, speaker, _ in rows[0][2]] == ["Ann (ann)", "Ann (ann2)"]


@pytest.mark.parametrize(("raw", "plain"), [("a &lt;b&gt; &amp; c", "a <b> & c"), ("&#" + "1" * 5000 + ";",) * 2])
def test_an_entity_is_a_letter_unless_its_number_has_no_end(raw: str, plain: str) -> None:
    assert People([], Tally()).plain(raw) == plain


@pytest.mark.parametrize(("file", "text"), [
    ({"title": "Plan", "filetype": "quip", "mode": "quip"}, "[file: Plan]"),
    ({"name": "v.m4a", "mimetype": "audio/mp4", "transcription": {"preview": {"content": "Call Lena"}}},
     "[audio: v.m4a]\nCall Lena"),
    ({"mode": "hidden_by_limit"}, "[file]")])
def test_files_are_named_by_their_kind(file: dict[str, Any], text: str) -> None:
    assert file_text(file) == text


def test_a_zip_gives_the_same_and_threads_stay_whole_on_demand(tmp_path: Path) -> None:
    rows, *_ = read(pack(tmp_path / "export.zip", SAMPLES["slack"]["files"]))
    assert [[text for *_, text in turns] for name, _, turns in rows if "thread" in name] == [
        ["Where do we ship?", "To Rome.", "No, to Oslo."]]
