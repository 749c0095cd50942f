"""ChatGPT's export: the tree of messages, branches, tools, pictures, hidden messages, and several files in a zip."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memlab.data.chats.formats import load
from memlab.support.errors import MemlabError
from tests.chat_exports import SAMPLES, read, write

T = 1709286000.5  # 2024-03-01 09:40:00 UTC


def node(key: str, parent: str | None, role: str | None = None, *parts: Any, kind: str = "text", at: float | None = T,
         **fields: Any) -> dict[str, Any]:
    message = None if role is None else {
        "id": key, "author": {"role": role, "name": None, "metadata": {}}, "create_time": at, "weight": 1.0,
        "content": {"content_type": kind, "parts": list(parts)}, "recipient": "all", "metadata": {}, **fields}
    return {"id": key, "parent": parent, "children": [], "message": message}


def conversation(title: str, *nodes: dict[str, Any], current: str | None, at: float = T) -> dict[str, Any]:
    return {"title": title, "create_time": at, "update_time": at, "mapping": {n["id"]: n for n in nodes},
            "current_node": current, "conversation_id": title, "moderation_results": []}


LISBON = conversation(
    "Lisbon trip 🇵🇹",
    node("root", None),
    node("s", "root", "system", "", at=None),
    node("ctx", "s", "user", "about me", kind="user_editable_context", at=None),
    node("q", "ctx", "user", "Where do I eat in Lisbon?"),
    node("a-old", "q", "assistant", "In a bad place."),
    node("a", "q", "assistant", "At Ramiro. \ue200cite\ue202turn0search1\ue201 Or Cervejaria【4†source】."),
    node("e-old", "a", "user", "And in Porto?"),
    node("e-old-a", "e-old", "assistant", "At Brasão."),
    node("e", "a", "user", "And in Évora? 😀",
         {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-ABC"},
         {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_XYZ"}, kind="multimodal_text",
         metadata={"attachments": [{"id": "file-ABC", "name": "map.png", "mime_type": "image/png"},
                                   {"id": "file-DEF", "name": "plan.pdf", "mime_type": "application/pdf"}]}),
    node("t", "e", "assistant", kind="thoughts"),
    node("call", "t", "assistant", "search(...)", recipient="web"),
    node("result", "call", "tool", "a long page", kind="tether_quote"),
    node("draw", "result", "tool", {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_P1"},
         kind="multimodal_text"),
    node("hidden", "draw", "assistant", "secret", metadata={"is_visually_hidden_from_conversation": True}),
    node("b", "hidden", "assistant", "At Fialho.", at=T + 60),
    current="b")
EXPECTED = ("2024-03-01 Lisbon trip 🇵🇹", "2024-03-01 09:40", [
    ("user", None, "Where do I eat in Lisbon?"),
    ("assistant", None, "At Ramiro. Or Cervejaria."),
    ("user", None, "And in Évora? 😀\n[image: file_XYZ]\n[image: map.png]\n[file: plan.pdf]"),
    ("assistant", None, "[tool: web]\n[image: file_P1]\nAt Fialho."),
])


def test_the_branch_of_the_current_message_is_taken_turn_by_turn(tmp_path: Path) -> None:
    rows, counts, _ = read(write(tmp_path, {"conversations.json": [LISBON], "user.json": {"id": "u"}}))
    assert rows == [EXPECTED]
    assert counts == {"messages of other branches left out (edited questions, repeated answers)": 3,
                      "thoughts of the assistant left out": 1, "results of tools left out": 1,
                      "instructions left out": 2, "messages that ChatGPT does not show left out": 1,
                      "marks of ChatGPT's page left out (cite)": 2}


def test_without_a_current_message_the_branch_of_the_latest_is_taken(tmp_path: Path) -> None:
    chat = conversation("x", node("q", None, "user", "one"), node("old", "q", "assistant", "two", at=T + 9),
                        node("new", "q", "assistant", "three", at=T + 10), current="gone")
    rows, counts, _ = read(write(tmp_path, {"conversations.json": chat}))
    assert rows[0][2] == [("user", None, "one"), ("assistant", None, "three")]
    assert counts["conversations without a current message: the branch of the latest was taken"] == 1


def test_a_message_whose_parent_is_missing_follows_the_one_before_it(tmp_path: Path) -> None:
    whole = [node("q", None, "user", "one"), node("a", "q", "assistant", "two", at=T + 1),
             node("e", "a", "user", "lost", at=T + 2), node("b", "e", "assistant", "four", at=T + 3)]
    rows, counts, _ = read(write(tmp_path, {"c.json": conversation("x", *whole[:2], whole[3], current="b")}))
    assert [text for *_, text in rows[0][2]] == ["one", "two\nfour"]
    assert not counts


def test_another_vendor_s_tree_is_not_taken_for_chatgpt_s(tmp_path: Path) -> None:
    write(tmp_path, SAMPLES["deepseek"]["files"])
    assert load(tmp_path).format.name == "deepseek"
    with pytest.raises(MemlabError, match="several formats: chatgpt, deepseek"):
        load(write(tmp_path, {"chatgpt/conversations.json": [LISBON]}))


def test_voice_and_code_keep_their_words(tmp_path: Path) -> None:
    chat = conversation(
        "x", node("q", None, "user", {"content_type": "audio_transcription", "text": "Hello there"},
                  {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://f"}, kind="multimodal_text"),
        node("a", "q", "assistant", kind="code", content={"content_type": "code", "text": "print(1)"}), current="a")
    assert read(write(tmp_path, {"conversations.json": [chat]}))[0][0][2] == [
        ("user", None, "Hello there\n[audio]"), ("assistant", None, "print(1)")]


def test_what_is_no_message_is_counted_by_kind_and_parts_are_named(tmp_path: Path) -> None:
    chat = conversation(
        "x", node("q", None, "user", {"content_type": "video_container_asset_pointer"}, {"content_type": "gizmo"},
                  {"content_type": "canvas_asset_pointer"}, "Look", kind="multimodal_text"),
        node("w", "q", "assistant", kind="super_widget", content={"content_type": "super_widget", "text": "a map"}),
        node("c", "w", "critic", "bad answer"),
        node("m", "c", "assistant", kind="x", content={"content_type": "model_editable_context",
                                                       "model_set_context": "likes tea"}), current="m")
    rows, counts, _ = read(write(tmp_path, {"conversations.json": [chat]}))
    assert rows[0][2] == [("user", None, "[video]\n[gizmo]\n[canvas]\nLook")]
    assert counts == {"messages of other kinds left out (super_widget, text)": 2, "instructions left out": 1}
