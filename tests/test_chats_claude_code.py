"""Session logs of Claude Code: parts, tools, sidechains, questions taken back, resumed sessions, cut-off lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.chat_exports import json_lines, read, write


def line(key: str, parent: str | None, kind: str, content: Any, at: str = "10:00:00", **fields: Any) -> dict[str, Any]:
    return {"type": kind, "uuid": key, "parentUuid": parent, "sessionId": "s", "isSidechain": False,
            "timestamp": f"2025-06-01T{at}.000Z", "message": {"role": kind, "content": content}, **fields}


def call(key: str, name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": key, "name": name, "input": {"file": "secret.py"}}


def result(key: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": key, "content": "a long output"}


LOG = [
    {"type": "summary", "summary": "Login bug", "leafUuid": "x"},
    {"type": "file-history-snapshot", "messageId": "1", "snapshot": {}},
    line("0", None, "user", "Caveat: generated", isMeta=True),
    line("0b", "0", "user", "<command-name>/clear</command-name>"),
    line("1", "0b", "user", "Fix the login bug 🐛<system-reminder>be careful</system-reminder>"),
    line("2", "1", "assistant", [{"type": "thinking", "thinking": "hm"}]),
    line("3", "2", "assistant", [{"type": "text", "text": "I look."}]),
    line("4", "3", "assistant", [call("t1", "Read")]),
    line("5", "4", "assistant", [call("t2", "Grep")]),
    line("6", "4", "user", [result("t1")]),  # beside the branch: calls side by side
    line("7", "5", "user", [result("t2")]),
    line("side", "5", "user", "sub-task", isSidechain=True),
    line("8", "7", "assistant", [{"type": "text", "text": "It is fixed."}]),
    line("9-old", "8", "user", "Now write a poem"),
    line("10-old", "9-old", "assistant", [{"type": "text", "text": "Roses"}]),
    line("9", "8", "user", [{"type": "text", "text": "Now the tests"}, {"type": "image", "source": {"data": "AA"}}]),
    line("10", "9", "user", "[Request interrupted by user]"),
    line("c", None, "user", "This session is being continued ...", isCompactSummary=True, logicalParentUuid="10"),
    line("11", "c", "assistant", [{"type": "text", "text": "Done."}], "11:00:00"),
]
TURNS = [("user", None, "Fix the login bug 🐛"),
         ("assistant", None, "I look.\n[tool: Read]\n[tool: Grep]\nIt is fixed."),
         ("user", None, "Now the tests\n[image]"), ("assistant", None, "Done.")]


def test_turn_by_turn(tmp_path: Path) -> None:
    rows, counts, _ = read(write(tmp_path, {"p/a.jsonl": json_lines(*LOG)}))
    assert rows == [("2025-06-01 Login bug", "2025-06-01 10:00", TURNS)]
    assert counts == {
        "messages of other branches left out (questions taken back)": 2, "messages of sub-agents left out": 1,
        "notes of the program left out": 3, "results of tools left out": 2, "summaries of earlier messages left out": 1,
        "thoughts of the assistant left out": 1}


def test_a_resumed_session_repeats_nothing_and_a_cut_off_line_is_counted(tmp_path: Path) -> None:
    resumed = json_lines(*LOG, line("12", "11", "user", "And the docs?", "12:00:00")) + '{"type": "assis'
    rows, counts, _ = read(write(tmp_path, {"b.jsonl": json_lines(*LOG), "c.jsonl": resumed}))
    assert [turns for *_, turns in rows] == [TURNS, [("user", None, "And the docs?")]]
    assert counts["logs that end in the middle of a line"] == 1
    assert counts["lines repeated from an earlier log left out"] == 17


def test_a_log_of_a_sub_agent_has_no_session(tmp_path: Path) -> None:
    side = [line("1", None, "user", "sub-task", isSidechain=True)]
    rows, counts, _ = read(write(tmp_path, {"agent-1.jsonl": json_lines(*side)}))
    assert rows == []
    assert counts["conversations without a message left out"] == 1
