"""Damaged bits in the folder of a memory are named, and cost nothing else.

Faults while one is written are tested in ``tests/faults``.
"""

from __future__ import annotations

import random
import shutil
import warnings
from pathlib import Path

import pytest

from memlab.memory.memory import Memory, Session
from memlab.pipeline.pipeline import Pipeline
from memlab.stages.search.dense import Dense
from memlab.stages.search.late_index import LateIndex
from memlab.stages.write.prune import Age
from memlab.support.errors import MemlabError
from tests.examples import NIGHTLY
from tests.stages.search.world import WordEmbedder
from tests.token_words import TokenWords

WORDS = WordEmbedder()
PIPELINE = Pipeline(dense=Dense(embedder=WORDS), prune=Age(days=90),
                    late=LateIndex(matcher=TokenWords(), exact_below=0, centroids=8))  # type: ignore[arg-type]
SECRET = "zebrafish code"


def filled(folder: Path) -> None:
    with Memory(folder, PIPELINE) as memory:
        memory.add(Session("2023-06-01", [("user", "I live in Oslo.")], "kept"))
        memory.add(Session("2023-01-01", [("user", SECRET)], "secret"))
        memory.add(Session("2023-06-02", [("user", "I own a boat.")], "also kept"))
        memory.search("code", "2023-01-02")


@pytest.mark.slow
def test_each_flipped_bit_is_named_or_changes_nothing_that_is_read(tmp_path: Path) -> None:
    filled(tmp_path / "whole")
    draw = random.Random(0)

    def read(folder: Path) -> tuple[object, ...]:
        with Memory(folder, PIPELINE) as memory:
            return memory.list().rows(), memory.search("Where is my boat?", "2023-07-01", k=3).rows()

    before = read(Path(shutil.copytree(tmp_path / "whole", tmp_path / "read")))
    named = 0
    for name in sorted(path.relative_to(tmp_path / "whole") for path in (tmp_path / "whole").rglob("*")
                       if path.is_file()):
        content = (tmp_path / "whole" / name).read_bytes()
        used = [at for at, byte in enumerate(content) if byte]  # most of a small database is empty
        for _ in range((100 if name.suffix == ".db" else 25) // (1 if NIGHTLY else 5)):
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
    assert named > 5
