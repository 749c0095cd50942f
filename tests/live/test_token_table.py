"""Token vectors of earlier versions: moved from the database into files once, read where nothing can be written."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from memlab.live import token_table
from memlab.live.database import FILE
from memlab.memory import Memory
from tests.live.test_token_log import SAID, filled, on_disk, pipeline
from tests.token_words import DIM, TokenWords

TABLE = ("CREATE TABLE token_vectors (model TEXT, key BLOB, tokens INTEGER NOT NULL, digest BLOB NOT NULL, "
         "content BLOB NOT NULL, PRIMARY KEY (model, key))")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A memory as an earlier version left it: its token vectors are rows of a table."""
    with filled(tmp_path):
        pass
    (files,) = tmp_path.glob("store/tokens/*")
    heads = np.fromfile(files / "ids", np.dtype([("id", "<i4"), ("scale", "<f4")]))
    vectors = np.fromfile(files / "vectors", "<f4").reshape(-1, DIM)
    database = sqlite3.connect(tmp_path / FILE)
    with database:
        database.execute(TABLE)
        texts = database.execute("SELECT key, first, tokens FROM token_texts ORDER BY first").fetchall()
        for key, first, tokens in texts:
            part = slice(first, first + tokens)
            content = heads["id"][part].tobytes() + heads["scale"][part].tobytes() + vectors[part].tobytes()
            digest = hashlib.blake2b(key + content, digest_size=8).digest()
            database.execute("INSERT INTO token_vectors VALUES (?, ?, ?, ?, ?)",
                             (files.name, key, tokens, digest, content))
        database.execute("DROP TABLE token_texts")
        database.execute("DROP TABLE token_files")
    database.close()
    for path in files.iterdir():
        path.unlink()
    files.rmdir()
    TokenWords.asked.clear()
    return tmp_path


def rows(folder: Path, change: str = "") -> list[bytes]:
    """The content of each row of the table, after a change."""
    database = sqlite3.connect(folder / FILE)
    with database:
        database.execute(change)
        content = [row for row, in database.execute("SELECT content FROM token_vectors ORDER BY rowid")]
    database.close()
    return content


@pytest.mark.parametrize("at_once", [1, 2, 3, 4])
def test_they_are_moved_into_files_once(folder: Path, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_table, "AT_ONCE", at_once)
    assert len(rows(folder)) == 3
    for _ in range(2):
        with Memory(folder, pipeline()) as memory:
            assert memory.search("cat Tom", "2023-02-01")["text"][0].endswith("my cat Tom naps")
        assert rows(folder) == []
    assert TokenWords.asked == ["cat Tom"] * 2
    (path,) = folder.glob("store/tokens/*/vectors")
    assert path.stat().st_size == 4 * DIM * sum(len(text.split()) for _, text in SAID)


def test_a_damaged_row_is_encoded_again(folder: Path) -> None:
    rows(folder, "UPDATE token_vectors SET content = zeroblob(length(content)) WHERE rowid = 2")
    with Memory(folder, pipeline()) as memory:
        assert memory.search("cat Tom", "2023-02-01")["text"][0].endswith("my cat Tom naps")
    assert TokenWords.asked == ["cat Tom", SAID[1][1]]
    assert rows(folder) == []


@pytest.mark.parametrize("change", ["tokens = 1", "tokens = 1 << 60", "tokens = -1", "tokens = 'x'", "key = 'x' || key",
                                    "key = 5", "content = 'x'", "digest = 5", "model = 5"])
def test_a_row_that_was_forged_is_encoded_again(folder: Path, change: str) -> None:
    rows(folder, f"UPDATE token_vectors SET {change} WHERE rowid = 2")
    for _ in range(2):
        with Memory(folder, pipeline()) as memory:
            assert memory.search("cat Tom", "2023-02-01")["text"][0].endswith("my cat Tom naps")
    assert sorted(TokenWords.asked) == sorted(["cat Tom", SAID[1][1], "cat Tom"])


def test_what_a_killed_process_had_moved_is_not_moved_again(folder: Path) -> None:
    before = rows(folder)
    database = sqlite3.connect(folder / FILE)
    table = database.execute("SELECT * FROM token_vectors").fetchall()
    database.close()
    with Memory(folder, pipeline()) as memory:
        scores = memory.search("cat Tom", "2023-02-01")
    (path,) = folder.glob("store/tokens/*/vectors")
    size = path.stat().st_size
    database = sqlite3.connect(folder / FILE)
    with database:
        database.executemany("INSERT INTO token_vectors VALUES (?, ?, ?, ?, ?)", table)
    database.close()
    assert rows(folder) == before
    with Memory(folder, pipeline()) as memory:
        assert memory.search("cat Tom", "2023-02-01").equals(scores)
        assert path.stat().st_size == size
        memory.forget("2023-01-03")
        assert memory.search("cat Tom", "2023-02-01")["text"][0].endswith("my cat Tom naps")
    assert rows(folder) == []
    assert TokenWords.asked == ["cat Tom"] * 3


def test_a_full_disk_costs_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    before = rows(folder)
    with monkeypatch.context() as patch, Memory(folder, pipeline()) as memory:
        patch.setattr(os, "pwrite", full)
        with pytest.warns(UserWarning, match="token vectors are not saved"):
            assert memory.search("cat Tom", "2023-02-01")["text"][0].endswith("my cat Tom naps")
    assert TokenWords.asked == ["cat Tom"]
    assert rows(folder) == before


def test_a_forgotten_text_leaves_the_table(folder: Path) -> None:
    assert on_disk(folder, SAID[1][1])
    with Memory(folder) as memory:  # this pipeline reads no token vectors
        memory.forget("2023-01-02")
    assert not on_disk(folder, SAID[1][1])
    assert len(rows(folder)) == 2


@pytest.fixture
def closed_folder(folder: Path) -> Iterator[Path]:
    os.chmod(folder / FILE, 0o400)
    os.chmod(folder, 0o500)
    yield folder
    os.chmod(folder, 0o700)


def test_a_folder_that_cannot_be_written_is_read(closed_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: mode == os.R_OK)  # root may write all the same
    with Memory(closed_folder, pipeline()) as memory:
        assert memory.search("cat Tom", "2023-02-01")["text"][0].endswith("my cat Tom naps")
    assert TokenWords.asked == ["cat Tom"]
    assert not list(closed_folder.glob("store/tokens/*"))
