"""Readers of a live memory's files on content that is almost right: entries, or a MemlabError."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
from hypothesis import given

from memlab.live.database import Database
from memlab.live.migration import LOG, migrate
from memlab.live.session_rows import SessionRows
from memlab.live.sessions import Entry, Session
from tests.fuzz.mutation import as_json, fuzz, mutated, outcome

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning")]

ENTRY = Entry.new(0, Session("2023-05-20T18:30", [("user", "hello"), ("assistant", "Hi!")], "s0")).row()


def opened(folder: Path) -> int:
    database = Database(folder)
    try:
        database.open()
        return len(SessionRows(database).load())
    finally:
        database.close()


@fuzz
@given(as_json(mutated(ENTRY)))
def test_logs_of_format_1(tmp_path: Path, content: bytes) -> None:
    shutil.rmtree(tmp_path / "memory", ignore_errors=True)
    (tmp_path / "memory").mkdir()
    body = content[1:]
    digest = hashlib.blake2b(body, digest_size=8).hexdigest().encode()
    (tmp_path / "memory" / LOG).write_bytes(b'{"check": "' + digest + b'", ' + body + b"\n")
    outcome(lambda: migrate(tmp_path / "memory"))
    outcome(lambda: opened(tmp_path / "memory"))
