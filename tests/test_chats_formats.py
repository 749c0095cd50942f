"""Any content: each reader returns sessions or raises MemlabError, and what it returns is a valid folder."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.chats.conversation import Tally
from memlab.chats.folder import ImportSettings, update_folder
from memlab.chats.formats import FORMATS
from memlab.chats.sessions import to_sessions
from memlab.chats.source import parse
from memlab.data.jsonl import read as read_folder
from memlab.errors import MemlabError
from tests.chat_exports import json_lines
from tests.test_chats_chatgpt import LISBON
from tests.test_chats_claude_code import LOG as CODE
from tests.test_chats_codex import LOG as CODEX
from tests.test_chats_gemini import KOREAN, SLOVENE, WORKSPACE
from tests.test_chats_grok import EXPORT as GROK
from tests.test_chats_perplexity import SITE, VENDOR
from tests.test_chats_slack import EXPORT
from tests.test_chats_whatsapp import ANDROID_12, IOS

KEYS = ["mapping", "current_node", "title", "parent", "message", "author", "role", "content", "parts", "content_type",
        "metadata", "attachments", "chat_messages", "sender", "text", "files", "uuid", "parent_message_uuid", "ts",
        "user", "subtype", "thread_ts", "type", "sessionId", "parentUuid", "payload", "timestamp", "messages", "name",
        "tool_calls", "create_time", "created_at", "recipient", "isSidechain", "id", "image_url", "num_turns",
        "header", "products", "time", "safeHtmlItem", "html", "details", "url", "subtitles", "attachedFiles",
        "conversation_turns", "user_turn", "system_turn", "turn_index", "prompt", "conversations", "conversation",
        "responses", "response", "_id", "parent_response_id", "$date", "$numberLong", "entries", "query", "answer",
        "blocks", "markdown_block"]
WORDS = st.sampled_from(["user", "assistant", "tool", "message", "text", "image", "image_url", "multimodal_text",
                         "response_item", "event_msg", "thread_rolled_back", "bot_message", "message_changed", "a", "b",
                         "1709286000.5", "2024-03-01T10:00:00Z", "9" * 400, "\ud83d", "<@U1|x>", "http://[",
                         "Gemini Apps", "Prompted a", "https://gemini.google.com/app/a", "<p>b</p><a href='", "human",
                         ""])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=5)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
    st.sampled_from(KEYS) | st.sampled_from("abc"), inner, max_size=6), max_leaves=25)


def examine(name: str, data: bytes) -> None:
    """Every format reads the file, or raises MemlabError; what it read is a folder without faults."""
    file = parse(name, data)
    for form in FORMATS:
        tally = Tally()
        try:
            if not form.matches(file):
                continue
            sessions = to_sessions(form.read([file], tally), "auto", ZoneInfo("Europe/Rome"), tally)
        except MemlabError:
            continue
        assert len({s.name for s in sessions}) == len(sessions)
        with tempfile.TemporaryDirectory() as folder:
            update_folder(Path(folder), ImportSettings("x", "day", "UTC"), sessions)
            faults = read_folder(Path(folder)).faults
        assert faults == ([] if sessions else ["sessions.jsonl: there is no line in it"])


@pytest.mark.slow
@given(VALUES, st.sampled_from(["a.json", "x/2024-03-01.json", "users.json"]))
def test_any_json(value: Any, name: str) -> None:
    examine(name, json.dumps(value).encode())


@pytest.mark.slow
@given(st.lists(VALUES, max_size=5))
def test_any_json_lines(values: list[Any]) -> None:
    examine("a.jsonl", json_lines(*values).encode())


@given(st.lists(st.sampled_from([*ANDROID_12.split("\n"), *IOS.split("\n"), "99/99/9999, 99:99 - : x"]) | st.text()))
def test_any_text(lines: list[str]) -> None:
    examine("a.txt", "\n".join(lines).encode(errors="replace"))


@given(st.lists(st.sampled_from(SLOVENE.replace("<", "\n<").replace(">", ">\n").split("\n")) | st.text(max_size=8)))
def test_any_page(pieces: list[str]) -> None:
    examine("a.html", "".join(['<div class="outer-cell">Gemini', *pieces]).encode(errors="replace"))


def mutated(value: Any, others: list[Any], draw: random.Random) -> Any:
    """Return a JSON value in which some parts are replaced by others, and some fields are missing."""
    if draw.randrange(15) == 0:
        return draw.choice(others)
    if isinstance(value, dict):
        return {k: mutated(v, others, draw) for k, v in value.items() if draw.randrange(15)}
    return [mutated(v, others, draw) for v in value] if isinstance(value, list) else value


@pytest.mark.slow
@pytest.mark.parametrize(("name", "export"), [
    ("conversations.json", [LISBON]), ("general/2024-03-01.json", EXPORT["general/2024-03-01.json"]),
    ("a.jsonl", CODE), ("a.jsonl", CODEX), ("MyActivity.json", KOREAN), ("conversation_1.json", WORKSPACE),
    ("prod-grok-backend.json", GROK), ("conversations.json", VENDOR), ("c.json", SITE)])
@given(others=st.lists(VALUES, min_size=1, max_size=3), seed=st.integers(0, 1000))
def test_damaged_exports(name: str, export: Any, others: list[Any], seed: int) -> None:
    value = mutated(export, others, random.Random(seed))
    lines = name.endswith(".jsonl") and isinstance(value, list)
    examine(name, (json_lines(*value) if lines else json.dumps(value)).encode())
