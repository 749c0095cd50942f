"""Faults at every point of an addition, a forgetting and a pruning: nothing finished lost, nothing forgotten kept."""

from __future__ import annotations

import errno
import multiprocessing
import os
import random
import shutil
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memlab.errors import MemlabError
from memlab.live.database import FILE
from memlab.memory import Memory, Session
from memlab.pipeline import Pipeline
from memlab.search.dense import Dense
from memlab.search.late_index import LateIndex
from memlab.write.prune import Age
from tests.search.world import WordEmbedder
from tests.token_words import TokenWords

WORDS = WordEmbedder()
PIPELINE = Pipeline(dense=Dense(embedder=WORDS), prune=Age(days=90),
                    late=LateIndex(matcher=TokenWords(), exact_below=0, centroids=8))  # type: ignore[arg-type]
SECRET = "zebrafish code"
FORKED = multiprocessing.get_context("forkserver")
"""Of one process that has imported this module: a new interpreter for each of 200 points takes six times as long."""
FORKED.set_forkserver_preload(["tests.live.test_faults"])


def act(memory: Memory, action: str) -> None:
    if action == "add":
        memory.add(Session("2023-06-01", [("user", "I bought a tent.")], "new"))
    elif action == "forget":
        memory.forget("secret")
    else:
        memory.prune("2023-06-15")


class FaultyConnection:
    """A connection whose calls that may write count as points of a fault."""

    def __init__(self, real: Any, faulty: Callable[[Any], Any]) -> None:
        self.real, self.execute, self.close = real, faulty(real.execute), real.close
        self.executemany, self.executescript = faulty(real.executemany), faulty(real.executescript)


def act_until_a_fault(folder: Path, action: str, mode: str, left: int) -> None:
    """Act and end this process: 7 if there is no point number ``left``, 0 if all was done, 3 if something failed."""
    memory = Memory(folder, PIPELINE)
    memory.sessions()

    def faulty(call: Any) -> Any:
        def counting(*args: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left == -1 and mode == "fail":
                raise OSError(errno.ENOSPC, "No space left on device")
            if left < 0 and mode == "kill":
                os._exit(9)
            return call(*args, **options)
        return counting

    for name in ("write", "pwrite", "fsync", "replace", "unlink", "ftruncate", "rmdir", "open"):
        setattr(os, name, faulty(getattr(os, name)))
    memory._database._connection = FaultyConnection(memory._database._connection, faulty)  # type: ignore[assignment]
    try:
        act(memory, action)
        done = True
    except Exception:  # noqa: BLE001
        done = False
    seen, left = left, 10**9
    memory.close()
    os._exit((0 if done else 3) if seen < 0 else 7)


def filled(folder: Path) -> None:
    with Memory(folder, PIPELINE) as memory:
        memory.add(Session("2023-06-01", [("user", "I live in Oslo.")], "kept"))
        memory.add(Session("2023-01-01", [("user", SECRET)], "secret"))
        memory.add(Session("2023-06-02", [("user", "I own a boat.")], "also kept"))
        memory.search("code", "2023-01-02")


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def check(folder: Path, action: str, done: bool) -> None:
    with Memory(folder, PIPELINE) as memory:
        names = set(memory.sessions()["name"])
        counted = set(memory._accesses.frame()["session"])
    held = everything(folder)
    assert {"kept", "also kept"} <= names
    assert b"Oslo" in held
    assert WORDS.vector("user: I live in Oslo.").tobytes() in held or WORDS.vector("I live in Oslo.").tobytes() in held
    if action == "add":
        assert "secret" in names
        assert not done or "new" in names
        return
    assert not done or "secret" not in names
    tokens = np.concatenate([rows for _, _, (rows,) in TokenWords().token_vectors([SECRET], "document")])
    vectors = [WORDS.vector(text) for text in (SECRET, f"user: {SECRET}")]
    secret = [SECRET.encode() in held, any(vector.tobytes() in held for vector in tokens),
              any(vector.tobytes() in held for vector in vectors), 1 in counted]
    assert secret == [("secret" in names)] * 4


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["fail", "kill"])
@pytest.mark.parametrize("action", ["add", "forget", "prune"])
def test_a_fault_at_each_point(tmp_path: Path, action: str, mode: str) -> None:
    filled(tmp_path / "whole")
    points = 0
    while True:
        folder = tmp_path / str(points)
        subprocess.run(["cp", "-r", tmp_path / "whole", folder], check=True)
        process = FORKED.Process(target=act_until_a_fault, args=(folder, action, mode, points))
        process.start()
        process.join(60)
        code = process.exitcode
        assert code in ((7, 0, 3) if mode == "fail" else (7, 9))
        check(folder, action, done=code in (0, 7))
        if code == 7:
            break
        points += 1
    assert points >= 8


@pytest.mark.slow
def test_each_flipped_bit_is_named_or_changes_nothing_that_is_read(tmp_path: Path) -> None:
    filled(tmp_path / "whole")
    draw = random.Random(0)

    def read(folder: Path) -> tuple[object, ...]:
        with Memory(folder, PIPELINE) as memory:
            return memory.sessions().rows(), memory.search("Where is my boat?", "2023-07-01", k=3).rows()

    before = read(Path(shutil.copytree(tmp_path / "whole", tmp_path / "read")))
    named = 0
    for name in sorted(path.relative_to(tmp_path / "whole") for path in (tmp_path / "whole").rglob("*")
                       if path.is_file()):
        content = (tmp_path / "whole" / name).read_bytes()
        used = [at for at, byte in enumerate(content) if byte]  # most of a small database is empty
        for _ in range(100 if name.suffix == ".db" else 25):
            folder = Path(shutil.copytree(tmp_path / "whole", tmp_path / "flipped"))
            flipped = bytearray(content)
            flipped[draw.choice(used)] ^= 1 << draw.randrange(8)
            (folder / name).write_bytes(flipped)
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                try:
                    assert read(folder) == before or any("damaged" in str(w.message) for w in warned)
                    named += bool(warned)
                except MemlabError as error:
                    assert str(folder) in str(error)  # noqa: PT017  (either outcome is right)
                    named += 1
            shutil.rmtree(folder)
    assert named > 20


def test_a_session_that_is_no_text_any_more_costs_no_other(tmp_path: Path) -> None:
    filled(tmp_path)
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole.replace(b"zebrafish", b"zebr\xe1fish"))
    with pytest.warns(UserWarning, match="session 1 is damaged"), Memory(tmp_path, PIPELINE) as memory:
        assert set(memory.sessions()["name"]) == {"kept", "also kept"}
