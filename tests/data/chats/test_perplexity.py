"""Perplexity's threads in the vendor's data and in replies of the web site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.chat_exports import read, write

VENDOR = {"conversations": [
    {"context_title": "DDR2 or DDR3?", "context_uuid": "c1", "collection_uuid": None, "mode": "COPILOT",
     "created_at": "2026-01-31T14:25:00Z", "entries": [
         {"query": "Is this DDR2?", "answer": "# Yes\nIt is **DDR2** memory[1].", "mode": "COPILOT",
          "created_at": "2026-01-31T14:25:58Z", "query_status": "COMPLETED"},
         {"query": "And this?", "answer": "", "created_at": "2026-01-31T14:27:00Z", "query_status": "FAILED"}]},
    {"context_title": "Empty", "created_at": "2026-02-01T09:00:00Z", "entries": []}]}


def site(question: str, time: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"uuid": question, "context_uuid": "c2", "thread_title": "Owls", "query_str": question,
            "status": "COMPLETED", "updated_datetime": time,
            "related_queries": ["How heavy?", "How old?"], "blocks": list(blocks)}


SITE = {"status": "success", "has_next_page": False, "next_cursor": None, "entries": [
    site("Do owls sleep?", "2025-07-26T00:50:10.801065",
         {"intended_usage": "sources_answer_mode", "sources_mode_block": {"rows": []}},
         {"intended_usage": "ask_text", "markdown_block": {
             "chunks": ["By"], "answer": "By day.\n## [Where](pplx://action/followup)\nIn `a[0]` trees [2]."}}),
    site("Where?", "2025-07-26T00:55:00.100000", {"intended_usage": "ask_text",
                                                  "markdown_block": {"chunks": ["In ", "trees."]}})]}


def test_the_data_that_the_vendor_sends(tmp_path: Path) -> None:
    rows, counts, _ = read(write(tmp_path, {"conversations.json": VENDOR}))
    assert rows == [("2026-01-31 DDR2 or DDR3?", "2026-01-31 14:25", [
        ("user", None, "Is this DDR2?"), ("assistant", None, "# Yes\nIt is **DDR2** memory[1]."),
        ("user", None, "And this?")])]
    assert counts == {"questions without an answer": 1, "conversations without a message left out": 1}


def test_replies_of_the_web_site(tmp_path: Path) -> None:
    rows, counts, _ = read(write(tmp_path, {"json/c2.json": SITE}), zone="Europe/Rome")
    assert rows == [("2025-07-26 Owls", "2025-07-26 02:50", [
        ("user", None, "Do owls sleep?"), ("assistant", None, "By day.\n## Where\nIn `a[0]` trees [2]."),
        ("user", None, "Where?"), ("assistant", None, "In trees.")])]
    assert not counts
