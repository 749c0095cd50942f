"""Readers of a live memory's files on content that is almost right: entries, or a MemlabError."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import MemlabError
from memlab.live.sessions import Entry, Session
from memlab.memory import Memory
from memlab.pipeline import Pipeline
from memlab.search.dense import Dense
from memlab.search.late_interaction import WeightedLate
from tests.fuzz.mutation import damaged, fuzz, mutated, outcome
from tests.search.world import WordEmbedder
from tests.token_words import TokenWords

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning")]

ENTRY = Entry.new(0, Session("2023-05-20T18:30", [("user", "hello"), ("assistant", "Hi!")], "s0")).row()


@fuzz
@given(mutated(ENTRY))
def test_rows_of_sessions(row: Any) -> None:
    seen = outcome(lambda: Entry.of_row(row))
    assert isinstance(seen, MemlabError) or Entry.of_row(seen.row()) == seen


PIPELINE = Pipeline(dense=Dense(embedder=WordEmbedder()), late=WeightedLate(matcher=TokenWords()))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a memory, copied while it is open: the latest commits are in the file beside the database."""
    folder = tmp_path_factory.mktemp("memory")
    with Memory(folder, PIPELINE) as memory:
        for day in (1, 2, 3):
            memory.add(Session(f"2023-06-0{day}", [("user", f"tea number {day}"), ("assistant", "Hi!")], f"s{day}"))
        memory.search("which tea?", "2023-06-05")
        memory.forget("s2")
    with Memory(folder, PIPELINE) as memory:
        memory.add(Session("2023-06-04", [("user", "I drank the rest.")]))
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@st.composite
def changed(draw: st.DrawFn, content: bytes) -> bytes:
    """Draw a file with some of its bytes replaced: any of them, or such as are not zero."""
    data = bytearray(content)
    used = [at for at, byte in enumerate(content) if byte]
    for _ in range(draw(st.integers(1, 8))):
        if data:
            at = draw(st.integers(0, len(data) - 1) | st.sampled_from(range(len(used))).map(used.__getitem__))
            new = draw(st.sampled_from((b"\0", b"\xff", b"\x7f", b"\x80", b"\xff\xff\xff\xff")) | st.binary(max_size=4))
            data[at:at + len(new)] = new
    return bytes(data)


@fuzz
@given(data=st.data())
def test_changed_bytes_in_the_folder_of_a_memory(tmp_path: Path, files: dict[str, bytes], data: st.DataObject) -> None:
    folder = tmp_path / "memory"
    shutil.rmtree(folder, ignore_errors=True)
    victim = data.draw(st.sampled_from(sorted(files)))
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    kept = files[victim]
    (folder / victim).write_bytes(data.draw(changed(kept) | damaged(st.just(kept))))

    def use() -> int:
        with Memory(folder, PIPELINE) as memory:
            rows = memory.list()
            assert isinstance(rows, pl.DataFrame)
            assert isinstance(memory.search("which tea?", "2023-06-06"), pl.DataFrame)
            number = memory.add(Session("2023-06-05", [("user", "More tea.")]))
            memory.forget(number)
            memory.prune("2023-06-06")
            return rows.height

    seen = outcome(use)
    assert isinstance(seen, MemlabError) or 0 <= seen <= 4
