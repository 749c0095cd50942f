"""The step from a folder of JSON lines to the database: nothing lost, and nothing old left, wherever it is killed."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memlab.errors import MemlabError
from memlab.live.database import FILE
from memlab.live.migration import LOG, is_memory
from memlab.live.row_files import row_digest
from memlab.live.sessions import Entry, Session
from memlab.memory import Memory
from memlab.pipeline import Pipeline
from memlab.runtime.checked_lines import encode
from memlab.search.dense import Dense
from memlab.store import Store
from memlab.store.segments import key_columns
from memlab.tables import texts_frame
from tests.search.world import WordEmbedder

WORDS = WordEmbedder()
PIPELINE = Pipeline(dense=Dense(embedder=WORDS))
TEXTS = ("I adopted a cat.", "Lovely!", "I moved to Oslo.")


def old_memory(folder: Path) -> Path:
    """Write a folder of format 1 by hand: two sessions, a forgotten one, a line cut off, counts and vectors."""
    said = [Session("2023-05-20", [("user", TEXTS[0]), ("assistant", TEXTS[1])], "cat"),
            Session("2023-05-21", [("user", TEXTS[2])])]
    lines = [encode({"memlab": "live memory", "format": 1}), encode(Entry(0, None).row()),
             *(encode(Entry.new(n, session).row()) for n, session in enumerate(said, start=1)),
             encode(Entry(3, None).row())]
    folder.mkdir(parents=True)
    (folder / LOG).write_bytes(b"".join(lines))
    (folder / "accesses.jsonl").write_text(json.dumps({"on": "2023-06-01", "turns": [[1, 0], [0, 0]]}) + "\nhalf")
    (folder / "damaged.jsonl").write_text("zebrafish")
    (folder / "lock").write_text("process 1 on nowhere")
    path, _ = Store(folder / "store")._fingerprint("vectors", WORDS, "document")
    path.mkdir(parents=True)
    (path / "identity.json").write_text("{}")
    keys = [row.astype("<u8").tobytes() for row in key_columns(texts_frame(TEXTS)["text_id"])]
    vectors = {text: WORDS.vector(text).tobytes() for text in texts_frame(TEXTS)["text"]}
    (path / f"{WORDS.size}.rows").write_bytes(b"".join(
        key + vector + row_digest(key, vector) for key, vector in zip(keys, vectors.values())))
    return folder


def assert_whole(folder: Path) -> None:
    with Memory(folder, PIPELINE) as memory:
        assert memory.sessions().select("session", "name", "turns").rows() == [(1, "cat", 2), (2, None, 1)]
        assert memory._accesses.frame().select("session", "turn", "times").rows() == [(1, 0, 1)]
        assert "Oslo" in memory.search("Oslo", "2023-06-01")["text"][0]
        assert memory.add(Session("2023-05-22", [("user", "One more.")])) == 4
    names = {path.name for path in folder.rglob("*") if path.is_file()}
    assert names == {FILE, "identity.json", f"{WORDS.size}.f32"}


def test_a_folder_of_format_1_is_brought_to_the_database(tmp_path: Path) -> None:
    folder = old_memory(tmp_path / "ann")
    assert is_memory(folder)
    with Memory(folder, PIPELINE) as memory:
        memory.look("Oslo", "2023-06-01")
        assert (memory._store.made["vectors"], memory._store.found["vectors"]) == (1, 3)  # the question's alone
    assert b"zebrafish" not in b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert_whole(old_memory(tmp_path / "bob"))


KILLED = """
import os, pathlib, sys
from memlab.live import database, migration
left = int(sys.argv[2])
def counted(call):
    def counting(*args, **options):
        global left
        left -= 1
        if left < 0:
            os._exit(9)
        return call(*args, **options)
    return counting
os.replace, os.fsync, os.pwrite = counted(os.replace), counted(os.fsync), counted(os.pwrite)
pathlib.Path.unlink = counted(pathlib.Path.unlink)
database.Database.run = counted(database.Database.run)
migration.migrate(pathlib.Path(sys.argv[1]))
"""


@pytest.mark.slow
def test_a_kill_at_any_point_leaves_the_old_memory_or_the_new(tmp_path: Path) -> None:
    points = 0
    while True:
        folder = old_memory(tmp_path / "ann")
        code = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(points)], check=False).returncode
        assert code in (0, 9)
        assert_whole(folder)
        shutil.rmtree(folder)
        if code == 0:
            break
        points += 1
    assert points >= 10


def test_a_damaged_line_is_named_and_costs_no_other(tmp_path: Path) -> None:
    folder = old_memory(tmp_path / "ann")
    lines = (folder / LOG).read_bytes()
    (folder / LOG).write_bytes(lines.replace(b'"cat"', b'"cow"'))
    with pytest.warns(UserWarning, match=r"memory.jsonl: line 3 is damaged"), Memory(folder, PIPELINE) as memory:
        assert memory.sessions()["session"].to_list() == [2]


def test_what_cannot_be_migrated_is_left_as_it_is(tmp_path: Path) -> None:
    folder = old_memory(tmp_path / "ann")
    with (folder / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(MemlabError, match="in use by process 1 on nowhere"):
            Memory(folder).sessions()
    for content, message in ((b"", "holds no session, but the vectors"), (b"a\nb\n", "is no live memory"),
                             (encode({"memlab": "live memory", "format": 9}), "format 9, which this version")):
        (folder / LOG).write_bytes(content)
        with pytest.raises(MemlabError, match=message):
            Memory(folder).sessions()
        assert (folder / LOG).read_bytes() == content
        assert not (folder / FILE).exists()
    assert (folder / "damaged.jsonl").read_text() == "zebrafish"
