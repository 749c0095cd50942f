"""Which servers there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memlab.models.chat.router import chat_servers
from tests.models.chatserver import publish


@pytest.mark.parametrize(("fields", "taken"), [
    ({}, True), ({"host": "n7", "shared": True}, True), ({"host": "n7"}, False), ({"task": ""}, False),
    ({"task": "embeddings"}, False), ({"model": "other"}, False),
    ({"model": "short", "names": ("short", "tiny")}, True),
    ({"revision": "abc"}, True), ({"revision": "xyz"}, False), ({"pid": 2**22}, False)])
def test_which_servers_take_part(fields: dict[str, Any], taken: bool, memlab_home: Path) -> None:
    publish("http://127.0.0.1:9/v1", **fields)
    assert bool(chat_servers("tiny", "abc")) == taken
