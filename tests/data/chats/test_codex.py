"""Session logs of Codex: envelopes, context of the program, rolled-back turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.chat_exports import json_lines, read, write

AT = "2025-10-29T00:59:38.317Z"


def item(**payload: Any) -> dict[str, Any]:
    return {"timestamp": AT, "type": "response_item", "payload": payload}


def said(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item(type="message", role=role, content=[{"type": kind, "text": text}])


def event(**payload: Any) -> dict[str, Any]:
    return {"timestamp": AT, "type": "event_msg", "payload": payload}


LOG = [
    {"timestamp": AT, "type": "session_meta", "payload": {"id": "1", "timestamp": AT, "cwd": "/w"}},
    said("developer", "You are Codex."),
    said("user", "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nBe brief."),
    said("user", "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>"),
    said("user", "What is in <b>a.py</b>?"),
    event(type="user_message", message="What is in <b>a.py</b>?"),
    {"timestamp": AT, "type": "turn_context", "payload": {"model": "m"}},
    item(type="reasoning", summary=[], encrypted_content="x"),
    item(type="function_call", name="shell", arguments="{}", call_id="c"),
    item(type="function_call_output", call_id="c", output="a long output"),
    said("assistant", "A function."),
    event(type="agent_message", message="A function."),
    said("user", "Delete it"), said("assistant", "Deleted."),
    event(type="thread_rolled_back", num_turns=1),
    said("user", "Rename it 🙂"), item(type="web_search_call", status="completed"), said("assistant", "Renamed."),
]
TURNS = [("user", None, "What is in <b>a.py</b>?"), ("assistant", None, "[tool: shell]\nA function."),
         ("user", None, "Rename it 🙂"), ("assistant", None, "[tool: web_search]\nRenamed.")]


def test_turn_by_turn(tmp_path: Path) -> None:
    rows, counts, _ = read(write(tmp_path, {"2025/10/29/rollout-1.jsonl": json_lines(*LOG), "x.json": {"a": 1}}))
    assert rows == [("2025-10-29 What is in <b>a.py</b>?", "2025-10-29 00:59", TURNS)]
    assert counts == {
        "context added by the program left out": 2, "instructions left out": 1, "results of tools left out": 1,
        "lines without a message left out (turn_context)": 1,
        "messages of other branches left out (questions taken back)": 2, "thoughts of the assistant left out": 1}


def test_every_kind_of_line_is_read_or_counted(tmp_path: Path) -> None:
    questions = '{"questions":[{"id":"q1","question":"Which base?","options":[]}]}'
    log = [LOG[0], said("user", "<p>Is this HTML?</p>"), said("user", "<user_action>review</user_action>"),
           item(type="function_call", name="request_user_input", call_id="c1", arguments=questions),
           item(type="function_call_output", call_id="c1", output='{"answers":{"q1":{"answers":["Postgres","16"]}}}'),
           item(type="image_generation_call", id="i", result="AA"), item(type="tool_search_call", call_id="c2"),
           item(type="tool_search_output", call_id="c2"), item(type="agent_message", content="hi"),
           item(type="compaction", encrypted_content="x"), item(type="ghost_snapshot"), event(type="token_count"),
           event(type="token_count"), event(type="context_compacted"), event(type="agent_reasoning", text="hm"),
           {"timestamp": AT, "type": "compacted", "payload": {"message": "so far"}},
           said("user", "Undo that"), said("assistant", "Done."), event(type="thread_rolled_back", num_turns=1),
           said("assistant", "Ready.")]
    rows, counts, _ = read(write(tmp_path, {"rollout-1.jsonl": json_lines(*log)}))
    assert [turn[::2] for turn in rows[0][2]] == [
        ("user", "<p>Is this HTML?</p>"), ("assistant", "[tool: request_user_input]"),
        ("user", "Which base? Postgres, 16"), ("assistant", "[tool: image_generation]\n[tool: tool_search]\nReady.")]
    assert counts == {
        "context added by the program left out": 1, "results of tools left out": 1,
        "messages of sub-agents left out": 1, "summaries of earlier messages left out": 2,
        "lines without a message left out (token_count, ghost_snapshot)": 3,
        "messages of other branches left out (questions taken back)": 2}
