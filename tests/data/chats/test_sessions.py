"""Sessions made of conversations: names of people and titles."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chat_exports import read, write

NAMES = ("علی\u200cرضا", "शर्\u200dमा", "Ann \U0001f469\u200d\U0001f4bb")


@pytest.mark.parametrize("name", NAMES)
def test_joiners_stay_in_names_and_titles_and_other_marks_leave_no_blank(tmp_path: Path, name: str) -> None:
    message = {"role": "user", "content": "Hi", "name": f"\u200f{name}\u2069"}
    rows, *_ = read(write(tmp_path, {"a.json": {"title": name, "messages": [message]}}))
    assert rows == [(name, None, [("user", name, "Hi")])]
