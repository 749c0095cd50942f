"""Messages of OpenAI's API in JSON and JSONL: one list or many, content parts, tools, dates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memlab.support.errors import MemlabError
from tests.chat_exports import json_lines, read, write

HELLO = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi", "name": "Ann"},
         {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "clock"}}]},
         {"role": "tool", "tool_call_id": "1", "content": "12:00"},
         {"role": "assistant", "content": [{"type": "output_text", "text": "Noon."}]}]
TURNS = [("user", "Ann", "Hi"), ("assistant", None, "[tool: clock]"), ("assistant", None, "Noon.")]


@pytest.mark.parametrize(("name", "content"), [
    ("a.json", HELLO), ("a.json", {"messages": HELLO}), ("a.json", [{"messages": HELLO}]), ("a.json", [HELLO]),
    ("a.jsonl", json_lines(*HELLO)), ("a.jsonl", json_lines({"messages": HELLO})), ("a.jsonl", json_lines(HELLO)),
])
def test_every_arrangement_gives_the_same_turns(tmp_path: Path, name: str, content: Any) -> None:
    rows, counts, _ = read(write(tmp_path, {name: content}) / name)
    assert [(when, turns) for _, when, turns in rows] == [(None, TURNS)]
    assert counts == {"instructions left out": 1, "results of tools left out": 1,
                      "sessions without a date, which every question may see": 1}


def test_moments_and_local_times_are_not_mixed(tmp_path: Path) -> None:
    hi = {"role": "user", "content": "Hi"}
    day, moment, local = ({**hi, "date": "2024-03-01"}, {**hi, "create_time": 1709337600},
                          {**hi, "date": "2024-03-02T08:00"})
    for name, messages in (("moments", [day, moment]), ("local", [day, local])):
        rows, *_ = read(write(tmp_path, {f"{name}.json": messages}) / f"{name}.json", split="day", zone="Asia/Tokyo")
        assert [when for _, when, _ in rows] == ["2024-03-01 00:00", "2024-03-02 08:00" if name == "local" else
                                                 "2024-03-02 09:00"]
    mixed = ({"title": "A", "messages": [moment]}, {"title": "B", "messages": [local]})
    write(tmp_path, {"mixed.jsonl": json_lines(*mixed)})
    with pytest.raises(MemlabError, match=r"conversation 'B': 2024-03-02T08:00:00 has no UTC offset, but .*"
                                          r"\(conversation 'A'\)"):
        read(tmp_path / "mixed.jsonl")


@pytest.mark.parametrize(("lines", "where"), [
    ([{"role": "user", "content": "Hi"}, {"role": "bot", "content": "Ho"}], "a.jsonl, message 1: there is no role"),
    ([{"role": "user", "content": "Hi"}, {"rolle": "user"}], 'message 1: expected an object with "role"'),
    ([{"role": "user", "content": 3}], "field content: expected text or a list"),
])
def test_faults_name_file_and_entry(tmp_path: Path, lines: list[Any], where: str) -> None:
    with pytest.raises(MemlabError, match=where):
        read(write(tmp_path, {"a.jsonl": json_lines(*lines)}))
