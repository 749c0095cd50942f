"""Grok's export: senders, times of MongoDB, branches, pictures, what is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.chat_exports import pack, read, write

START = 1709286000000  # 2024-03-01 09:40 UTC, in ms


def response(key: str, sender: str, message: str, minute: int, parent: str = "", **fields: Any) -> dict[str, Any]:
    time = {"$date": {"$numberLong": str(START + 60_000 * minute)}}
    return {"response": {"_id": key, "conversation_id": "c1", "sender": sender, "message": message, "create_time": time,
                         "model": "", "metadata": {}, **({"parent_response_id": parent} if parent else {}), **fields},
            "share_link": None}


def conversation(title: str, *responses: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"conversation": {"id": title, "title": title, "create_time": "2024-03-01T09:39:00.867890Z",
                             "leaf_response_id": None, "summary": "", **fields}, "responses": list(responses)}


CITED = ('Basil.<grok:render card_id="9489d4" card_type="citation_card" type="render_inline_citation">\n'
         '<argument name="citation_id">0</argument>\n</grok:render> Oil < nuts.')
EXPORT = {
    "conversations": [
        conversation("A recipe",
                     response("1", "human", "How do I make pesto?", 0, file_attachments=["d2f0", "e3a1"]),
                     response("2", "ASSISTANT", CITED, 1, "1", thinking_trace="hm", steps=[{"tagged_text": {}}],
                              agent_thinking_traces=[{"agent_id": 1, "thinking_trace": "..."}],
                              web_search_results=[{"url": "https://x.org"}]),
                     response("2b", "assistant", "Another answer", 2, "1"),
                     response("3", "human", "A picture, please", 3, "2"),
                     response("4", "grok-3", "", 4, "3", generated_image_urls=["https://a.x/pesto.jpg?v=1"]),
                     response("5", "human", "", 5, "4"),
                     response("6", "assistant", "", 6, "5", error="Failed to respond.")),
        conversation("Nothing")],
    "projects": [{"name": "Cook"}]}


def test_turn_by_turn(tmp_path: Path) -> None:
    folder = "ttl/30d/export_data/u1"
    files = {f"{folder}/prod-grok-backend.json": EXPORT, f"{folder}/prod-mc-billing.json": {"balance_map": {}},
             f"{folder}/prod-mc-asset-server/d2f0/content": b"x"}
    rows, counts, _ = read(pack(tmp_path / "export.zip", files))
    assert rows == [("2024-03-01 A recipe", "2024-03-01 09:40", [
        ("user", None, "How do I make pesto?\n[file: d2f0]\n[file: e3a1]"),
        ("assistant", None, "Basil. Oil < nuts."),
        ("user", None, "A picture, please"),
        ("assistant", None, "[image: pesto.jpg]")])]
    assert counts == {
        "messages of other branches left out (edited questions, repeated answers)": 1,
        "messages without text left out": 2, "thoughts of the assistant left out": 2, "results of tools left out": 2,
        "conversations without a message left out": 1}


def test_the_leaf_is_taken_where_it_is_in_the_export(tmp_path: Path) -> None:
    turns = (response("1", "human", "one", 0), response("2", "assistant", "two", 1, "1"),
             response("2b", "assistant", "two again", 2, "1"))
    for leaf, last in (("2", "two"), ("gone", "two again"), (None, "two again")):
        chat = conversation("x", *turns, leaf_response_id=leaf)
        rows, *_ = read(write(tmp_path, {"a.json": {"conversations": [chat]}}))
        assert [words for *_, words in rows[0][2]] == ["one", last]
