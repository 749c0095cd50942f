"""The folder of a live memory: one process at a time, closed to others, and whole copies."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memlab.memory.memory import Memory, Session
from memlab.pipeline.pipeline import Pipeline
from memlab.stages.search.bm25 import BM25
from memlab.stages.search.dense import Dense
from memlab.stages.search.late_index import LateIndex
from memlab.stages.write.prune import Age
from memlab.support.errors import MemlabError
from tests.small import lexical
from tests.stages.search.world import WordEmbedder
from tests.token_words import TokenWords

WORDS = WordEmbedder()
PIPELINE = Pipeline(lexical=BM25(), dense=Dense(embedder=WORDS), prune=Age(days=90),
                    late=LateIndex(matcher=TokenWords(), exact_below=0, centroids=4))  # type: ignore[arg-type]
CAT = Session("2023-05-20", [("user", "I adopted a cat."), ("assistant", "Lovely!")], "cat")
USE = """
import sys
from pathlib import Path
from memlab.memory.database import Database
database = Database(Path(sys.argv[1]))
database.open()
database.close()
"""


def other_process(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", USE, str(folder)], capture_output=True, text=True, check=False)


def copy(folder: Path) -> None:
    shutil.copytree(folder, folder.with_name("copy"))


def fork(folder: Path) -> None:
    child = os.fork()
    if not child:  # pragma: no cover - the forked process
        (folder / "memory.db").read_bytes()
        os._exit(0)
    os.waitpid(child, 0)


@pytest.mark.parametrize("harmless", [copy, fork])
def test_what_a_process_reads_of_its_own_memory_lets_no_other_in(tmp_path: Path, harmless: Callable[[Path], None]
                                                                 ) -> None:
    with Memory(tmp_path / "memory") as memory:
        memory.add(CAT)
        harmless(tmp_path / "memory")
        other = other_process(tmp_path / "memory")
        assert other.returncode == 1
        assert "this memory is in use by another process" in other.stderr
        with pytest.raises(MemlabError, match="in use by this process.*use the Memory of this folder that it has open"):
            len(Memory(tmp_path / "memory"))
        memory.add(Session("2023-05-22", [("user", "after it")]))
    assert other_process(tmp_path / "memory").returncode == 0
    with Memory(tmp_path / "memory") as memory:
        assert len(memory) == 2


def test_a_forked_process_that_lives_on_does_not_hold_the_memory(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    memory.add(CAT)
    child = os.fork()
    if not child:  # pragma: no cover - the forked process
        time.sleep(60)
        os._exit(0)
    try:
        memory.close()
        assert other_process(tmp_path).returncode == 0
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def test_a_file_system_without_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_file: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, "none")

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.raises(MemlabError, match="has no locks, so two processes could change the memory.*on a local disk"):
        Memory(tmp_path / "memory").add(CAT)


def test_only_the_owner_can_read_a_memory(tmp_path: Path) -> None:
    folder, shared = tmp_path / "above" / "memory", tmp_path / "shared"
    shared.mkdir()
    (shared / "notes.txt").touch()
    before = os.umask(0o022)
    try:
        for place in (folder, shared):
            with Memory(place, PIPELINE) as memory:
                memory.add(CAT)
                memory.search("cat", "2023-06-01")
    finally:
        os.umask(before)
    assert [path for path in [folder, *folder.rglob("*")] if stat.S_IMODE(path.stat().st_mode) & 0o077] == []
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in [shared, *shared.iterdir()]} == {
        "shared": 0o755, "notes.txt": 0o644, "memory.db": 0o600, "store": 0o700}


def test_a_backup_beside_searches_and_additions_is_whole(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory", PIPELINE) as memory, ThreadPoolExecutor(1) as pool:
        memory.add(CAT)
        done = threading.Event()

        def work() -> None:
            while not done.is_set():
                memory.add(Session("2023-05-21", [("user", f"tea number {len(memory)}")]))
                memory.search("cat", "2023-06-01")

        working = pool.submit(work)
        counts = []
        for number in range(3):
            counts.append(len(memory))
            memory.backup(tmp_path / f"backup{number}")
        done.set()
        working.result()
    for number, count in enumerate(counts):
        TokenWords.asked.clear()
        with Memory(tmp_path / f"backup{number}", PIPELINE) as copied:
            assert len(copied) >= count
            assert copied.search("cat", "2023-06-01")["text"].str.contains("cat").any()
        assert TokenWords.asked == ["cat"]  # the vectors were copied too


def test_a_backup_replaces_nothing(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory", PIPELINE) as memory:
        memory.add(CAT)
        (tmp_path / "there").mkdir()
        memory.backup(tmp_path / "there")  # empty
        with pytest.raises(MemlabError, match="a backup replaces nothing.*new folder"):
            memory.backup(tmp_path / "there")
    assert len(Memory(tmp_path / "there")) == 1


def test_no_copy_lies_in_the_folder_where_forgotten_words_are_removed(tmp_path: Path) -> None:
    own = tmp_path / "memory"
    with Memory(own, PIPELINE) as memory:
        memory.add(CAT)
        for use in (lambda: memory.backup(own), lambda: memory.backup(own / "inside"),
                    lambda: memory.export(own / "inside.jsonl")):
            with pytest.raises(MemlabError, match="this is in the folder of the memory.*a place outside of it"):
                use()
    assert not [path for path in own.rglob("*") if path.name.startswith("inside")]


def test_a_backup_to_a_folder_of_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("file:a?mode=memory", "it's 100%", os.fsdecode(b"a\xff")):
        with Memory(f"{name}1") as memory:
            memory.add(CAT)
            memory.backup(name)
        assert len(Memory(name)) == 1


def test_an_addition_is_whole_on_the_disk_when_it_returns(tmp_path: Path) -> None:
    """A copy holds what is left where the process is killed."""
    with Memory(tmp_path / "memory", lexical()) as memory:
        for number in range(3):
            memory.add(Session("2023-05-20", [("user", f"fact number{number}")]))
            with Memory(shutil.copytree(tmp_path / "memory", tmp_path / f"copy{number}"), lexical()) as copied:
                assert len(copied) == number + 1
                assert copied.search(f"number{number}", "2023-06-01", 1)["session"].to_list() == [number]


@pytest.mark.parametrize("files", [("memory.db", "memory.db-wal"), ("memory.db-wal", "memory.db"), ("memory.db",)])
def test_a_copy_made_while_the_memory_changes_opens_or_is_refused(tmp_path: Path, files: tuple[str, ...]) -> None:
    """Each file is copied at another moment, as ``cp -r`` may do."""
    with Memory(tmp_path / "memory", lexical()) as memory:
        added = 0
        for number, between in enumerate([1, 3, 60]):
            target = tmp_path / f"copy{number}"
            target.mkdir()
            for name in files:
                for _ in range(between):
                    memory.add(Session("2023-05-20", [("user", f"number {added} " + "word " * 400)], f"s{added}"))
                    added += 1
                shutil.copy(tmp_path / "memory" / name, target)
            try:
                with Memory(target, lexical()) as copied:
                    names = set(copied.list()["name"])
            except MemlabError as error:
                assert "was copied while the memory was in use" in str(error)  # noqa: PT017
                continue
            assert names == {f"s{n}" for n in range(len(names))}
