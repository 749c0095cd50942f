"""Claude's export: content parts, attachments, branches where parents are named, empty conversations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.chat_exports import pack, read, write


def message(key: str, sender: str, text: str, *content: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"uuid": key, "sender": sender, "text": text, "content": list(content), "attachments": [], "files": [],
            "created_at": "2024-05-02T23:10:00.123456Z", "updated_at": "2024-05-02T23:10:00Z", **fields}


def conversation(name: str, *messages: dict[str, Any]) -> dict[str, Any]:
    return {"uuid": name, "name": name, "created_at": "2024-05-02T23:00:00Z", "account": {"uuid": "u"},
            "chat_messages": list(messages)}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words, "citations": []}


def test_turn_by_turn(tmp_path: Path) -> None:
    chat = conversation(
        "A recipe",
        message("1", "human", "How do I make pesto? 🌿", attachments=[
            {"file_name": "notes.txt", "file_size": 9, "file_type": "txt", "extracted_content": "secret text"}],
            files=[{"file_name": "basil.jpg", "file_kind": "image"}, {"file_uuid": "x"}]),
        message("2", "assistant", "ignored where content is there", {"type": "thinking", "thinking": "hm"},
                text("Let me look."), {"type": "tool_use", "name": "web_search", "input": {"query": "pesto"}},
                {"type": "tool_result", "name": "web_search", "content": [text("a long page")]},
                text("Basil, oil, nuts.\n```\nThis block is not supported on your current device yet.\n```")),
        message("3", "human", ""),
        message("4", "human", "Thanks."))
    design = {"uuid": "d", "title": "Logo", "messages": [{"role": "user", "content": {"content": "A logo, please."}}]}
    files = {"conversations.json": [chat, conversation("Nothing")], "users.json": [], "design_chats/d.json": design}
    rows, counts, _ = read(pack(tmp_path / "data-2024-batch-0000.zip", files))
    assert rows == [("2024-05-02 A recipe", "2024-05-02 23:10", [
        ("user", None, "How do I make pesto? 🌿\n[file: notes.txt]\n[image: basil.jpg]\n[file]"),
        ("assistant", None, "Let me look.\n[tool: web_search]\nBasil, oil, nuts."),
        ("user", None, "Thanks."),
    ])]
    assert counts == {"thoughts of the assistant left out": 1, "results of tools left out": 1,
                      "texts of attached files left out": 1, "chats about designs left out": 1,
                      "conversations without a message left out": 1}


def test_where_parents_are_named_the_branch_of_the_last_message_is_taken(tmp_path: Path) -> None:
    root = "00000000-0000-4000-8000-000000000000"
    chat = conversation("x", message("1", "human", "one", parent_message_uuid=root),
                        message("2", "assistant", "two", parent_message_uuid="1"),
                        message("2b", "human", "an edit", parent_message_uuid="1"),
                        message("3", "human", "three", parent_message_uuid="2"))
    rows, counts, _ = read(write(tmp_path, {"conversations.json": [chat]}))
    assert [words for _, _, words in rows[0][2]] == ["one", "two", "three"]
    assert counts == {"messages of other branches left out (edited questions, repeated answers)": 1}
    rows, *_ = read(write(tmp_path, {"conversations.json": [{**chat, "current_leaf_message_uuid": "2b"}]}))
    assert [words for _, _, words in rows[0][2]] == ["one", "an edit"]


def test_the_text_stands_before_parts_that_hold_none(tmp_path: Path) -> None:
    chat = conversation("x", message("1", "human", "Look at this", {"type": "flag", "flag": "f"}),
                        message("2", "assistant", "I search.", {"type": "tool_use", "name": "web_search"}),
                        message("2b", "assistant", "", {"type": "of_tomorrow", "text": "New words."}),
                        message("3", "system", "be kind"))
    rows, counts, _ = read(write(tmp_path, {"conversations.json": [chat]}))
    assert [words for _, _, words in rows[0][2]] == [
        "Look at this\n[flag]", "I search.\n[tool: web_search]\nNew words."]
    assert counts == {"messages of neither human nor assistant left out": 1}
