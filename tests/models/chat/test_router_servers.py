"""Which servers there are, and which of them a prompt is for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memlab.models.chat.router import chat_servers, choose, prefix_digests
from memlab.models.protocols import Message, Prompt
from tests.models.chatserver import publish

URLS = [f"http://n{i}:8000/v1" for i in range(4)]


def prompt(text: str, system: str = "Be brief.") -> Prompt:
    return Prompt((Message("system", system), Message("user", text)))


def test_a_server_that_comes_or_goes_moves_its_own_prompts_alone() -> None:
    keys = [str(i).encode() for i in range(2000)]
    before = {key: choose(key, URLS) for key in keys}
    after = {key: choose(key, URLS[:3]) for key in keys}
    assert {key for key in keys if before[key] != after[key]} == {key for key in keys if before[key] == URLS[3]}
    assert all(400 < count < 600 for count in Counter(before.values()).values())


def test_what_begins_alike_has_one_opening_whatever_the_system_says_and_all_share() -> None:
    lead = "Here is a conversation. " * 40  # longer than what is looked at: all prompts have it
    one, other, third = prefix_digests([prompt(f"{lead}{'x' * 300} 1"), prompt(f"{lead}{'x' * 300} 2"),
                                        prompt(f"{lead}y")])
    assert one == other != third
    assert prefix_digests([prompt("a", "one"), prompt("a", "two")])[0] == prefix_digests([prompt("a")])[0]
    assert prefix_digests([]) == []
    assert prefix_digests([Prompt((Message("system", "\ud800"),))]) == prefix_digests([prompt("")])


def test_the_opening_is_the_same_when_other_prompts_are_asked_beside() -> None:
    lead = "Here is a conversation. " * 40
    first = [prompt(f"{lead}monday {i} {'x' * 300}") for i in range(3)]
    more = [*first, prompt(f"{lead}moon {'x' * 300}")]  # all but this one share three characters more
    assert prefix_digests(first) == prefix_digests(more)[:3]


@pytest.mark.parametrize(("fields", "taken"), [
    ({}, True), ({"host": "n7", "shared": True}, True), ({"host": "n7"}, False), ({"task": ""}, False),
    ({"task": "embeddings"}, False), ({"model": "other"}, False),
    ({"model": "short", "names": ("short", "tiny")}, True),
    ({"revision": "abc"}, True), ({"revision": "xyz"}, False), ({"pid": 2**22}, False)])
def test_which_servers_take_part(fields: dict[str, Any], taken: bool, memlab_home: Path) -> None:
    publish("http://127.0.0.1:9/v1", **fields)
    assert bool(chat_servers("tiny", "abc")) == taken
