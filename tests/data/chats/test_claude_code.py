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
        "lines without a message left out (file-history-snapshot)": 1,
        "messages of other branches left out (questions taken back)": 2, "messages of sub-agents left out": 1,
        "notes of the program left out": 4, "results of tools left out": 2, "summaries of earlier messages left out": 1,
        "thoughts of the assistant left out": 1}


def test_a_resumed_session_repeats_nothing_and_a_cut_off_line_is_counted(tmp_path: Path) -> None:
    resumed = json_lines(*LOG, line("12", "11", "user", "And the docs?", "12:00:00")) + '{"type": "assis'
    rows, counts, _ = read(write(tmp_path, {"b.jsonl": json_lines(*LOG), "c.jsonl": resumed}))
    assert [turns for *_, turns in rows] == [TURNS, [("user", None, "And the docs?")]]
    assert counts["logs that end in the middle of a line"] == 1
    assert counts["lines repeated from an earlier log left out"] == 15


def queue(operation: str, content: str | None = None, **fields: Any) -> dict[str, Any]:
    """Return an operation of the queue as Claude Code 2.0 and 2.1 write it."""
    return {"type": "queue-operation", "operation": operation, "sessionId": "s",
            "timestamp": "2025-06-01T10:00:30.000Z", **({} if content is None else {"content": content}), **fields}


def queued(prompt: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "attachment", "sessionId": "s", "timestamp": "2025-06-01T10:00:31.000Z",
            "attachment": {"type": "queued_command", "prompt": prompt, "commandMode": "prompt", **fields}}


def turns_of(tmp_path: Path, *lines: dict[str, Any]) -> tuple[list[tuple[str, str]], dict[str, int]]:
    rows, counts, _ = read(write(tmp_path, {"a.jsonl": json_lines(*lines)}))
    return [(role, text) for *_, turns in rows for role, _, text in turns], counts


ASKED, WORKING = line("1", None, "user", "Refactor"), line("2", "1", "assistant", [{"type": "text", "text": "I work."}])
DONE = line("9", "2", "assistant", [{"type": "text", "text": "Done."}], "10:05:00")


def test_what_is_typed_while_the_assistant_works_is_a_turn(tmp_path: Path) -> None:
    image = [{"type": "text", "text": "like this"}, {"type": "image", "source": {"type": "base64", "data": "AA"}}]
    turns, counts = turns_of(
        tmp_path, ASKED, WORKING, queue("enqueue", "use tabs"), queued("use tabs", origin={"kind": "human"}),
        queue("remove", "use tabs", reason="absorbed_mid_turn"), queued(image), DONE)
    assert turns == [("user", "Refactor"), ("assistant", "I work."), ("user", "use tabs"),
                     ("user", "like this\n[image]"), ("assistant", "Done.")]
    assert counts == {}


def test_the_queue_alone_is_read_and_no_prompt_is_given_twice(tmp_path: Path) -> None:
    turns, counts = turns_of(
        tmp_path, ASKED, WORKING,
        queue("enqueue", "use tabs"), queue("remove"),  # of versions that write nothing else
        queue("remove", "and one\nfile", reason="absorbed_mid_turn"), DONE,
        queue("enqueue", "then test"), queue("enqueue", "then ship"), queue("dequeue"), queue("dequeue"),
        line("10", "9", "user", "then test\nthen ship"),
        queue("enqueue", "no, wait"), queue("popAll"), queue("enqueue", "never sent"),
        queue("enqueue", "cancelled"), queue("remove", "cancelled", reason="cancelled"),
        queue("enqueue", "<task-notification>x</task-notification>"))
    assert turns == [("user", "Refactor"), ("assistant", "I work."), ("user", "use tabs"), ("user", "and one\nfile"),
                     ("assistant", "Done."), ("user", "then test\nthen ship")]
    assert counts == {}


def test_what_programs_queue_and_other_lines_are_counted_by_kind(tmp_path: Path) -> None:
    note = "<task-notification><task-id>b1</task-id></task-notification>"
    turns, counts = turns_of(
        tmp_path, ASKED, queued(note, commandMode="task-notification"), queued("hi", origin={"kind": "peer"}),
        line("3", "1", "user", "agent stopped", origin={"kind": "coordinator"}), queued("caveat", isMeta=True),
        line("4", "3", "assistant", "No response requested.", message={
            "model": "<synthetic>", "content": [{"type": "text", "text": "No response requested."}]}),
        {"type": "system", "subtype": "local_command", "content": "<local-command-stdout>ok</local-command-stdout>"},
        {"type": "system", "subtype": "turn_duration"}, {"type": "progress", "data": {}}, {"type": "progress"},
        {"type": "attachment", "attachment": {"type": "todo_reminder"}}, {"type": "mode"}, {"type": "last-prompt"})
    assert turns == [("user", "Refactor")]
    assert counts == {
        "notes of the program left out": 4, "messages of other programs left out": 2,
        "lines without a message left out (progress, last-prompt, mode, system, todo_reminder)": 6}


def test_answers_reasons_commands_and_notes_are_words_of_the_user(tmp_path: Path) -> None:
    refused = ("The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how to "
               "proceed, the user said:\nuse sqlite")
    advice = "\n\nNote: The user's next message may contain a correction."
    turns, _ = turns_of(
        tmp_path, ASKED, line("2", "1", "assistant", [call("t1", "AskUserQuestion"), call("t2", "Edit")]),
        line("3", "2", "user", [result("t1")], toolUseResult={
            "questions": [], "answers": {"Which base?": "Postgres", "Which files?": ["a", "b"]},
            "annotations": {"Which base?": {"notes": "16 or later"}}}),
        line("4", "2", "user", [{**result("t2"), "is_error": True, "content": refused + advice}]),
        line("5", "4", "user", [{**result("t3"), "is_error": True, "content": "grep: the user said: x"}]),
        line("6", "5", "user", "<command-name>/review</command-name>\n<command-args>the parser</command-args>"),
        line("7", "6", "user", "<user-memory-input>always use tabs</user-memory-input>"))
    assert turns == [("user", "Refactor"), ("assistant", "[tool: AskUserQuestion]\n[tool: Edit]"),
                     ("user", "Which base? Postgres 16 or later\nWhich files? a, b"), ("user", "use sqlite"),
                     ("user", "/review the parser"), ("user", "always use tabs")]


def test_the_title_is_the_users_then_the_models(tmp_path: Path) -> None:
    for number, (lines, title) in enumerate((
            ([{"type": "ai-title", "aiTitle": "Old", "sessionId": "s"}, {"type": "ai-title", "aiTitle": "New"}], "New"),
            ([{"type": "custom-title", "customTitle": "Mine"}, {"type": "ai-title", "aiTitle": "New"}], "Mine"))):
        rows, counts, _ = read(write(tmp_path / str(number), {"a.jsonl": json_lines(ASKED, *lines)}))
        assert (rows[0][0], counts) == (f"2025-06-01 {title}", {})
