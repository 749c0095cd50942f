"""No byte of what a memory forgot is in any file of its folder: texts, names, dates, vectors, token vectors, keys.

Half of the sessions are forgotten, some one by one and the others in one transaction.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from memlab.memory.memory import Memory, Session
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.tables import text_hash
from memlab.stages.search.bm25 import BM25
from memlab.stages.search.dense import Dense
from memlab.stages.search.faiss_index import HNSW
from memlab.stages.search.late_index import LateIndex
from memlab.stages.write.prune import Age
from memlab.store.segment import key_columns
from tests.stages.search.world import WordEmbedder
from tests.token_words import TokenWords

WORDS = WordEmbedder()
PRECISIONS = ("fp32", "fp16", "int8")
ASKED, PRUNED = "3000-01-02", "4200-01-01"
"""The day of questions, which find all sessions, and that of pruning, which leaves those of the year 3000."""


def pipeline(precision: str) -> Pipeline:
    late = LateIndex(matcher=TokenWords(), exact_below=0, centroids=4, precision=precision)  # type: ignore[arg-type]
    dense = Dense(embedder=WORDS, index=HNSW(exact_below=0))
    return Pipeline(lexical=BM25(), dense=dense, late=late, prune=Age(days=731_000))


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@dataclass(frozen=True)
class Said:
    """A session whose text, name and date are in no other."""

    number: int
    text: str
    day: str

    @classmethod
    def all(cls, seed: int, count: int) -> list[Said]:
        draw = random.Random(seed)
        return [cls(n, f"zebra{n:05d}q " + " ".join(f"filler{draw.randrange(50)}" for _ in range(
            draw.choice((1, 5, 40, 400)))), f"{1000 + n}-03-04") for n in range(count)]

    @property
    def name(self) -> str:
        return f"name{self.number:05d}q"

    def words(self) -> list[bytes]:
        days = [f"{self.day[:-1]}{n}" for n in (4, 5, 6)]
        return [part.encode() for part in (self.text.split()[0], self.name, *days)]

    def rows(self, shared: set[int]) -> dict[bytes, str]:
        """The bytes of its vectors and of the keys of its texts -> what they are; shared: ids of tokens of others."""
        found: dict[bytes, str] = {}
        for text in (self.text, f"user: {self.text}"):
            vector = WORDS.vector(text)
            found |= {vector.tobytes(): "vector", vector.astype("<f2").tobytes(): "vector, fp16",
                      key_columns(pl.Series([text_hash(text)])).tobytes(): "key"}
        ((_, (ids,), (tokens,)),) = TokenWords().token_vectors([self.text.split()[0]], "document")
        if int(ids[0]) not in shared:  # ids are not unique
            found |= {tokens.tobytes(): "token vector", tokens.astype("<f2").tobytes(): "token vector, fp16"}
        return found


def scan(folder: Path, gone: Sequence[Said], kept: Iterable[Said]) -> Counter[str]:
    """Look for all that belongs to some sessions alone, at each byte of each file; count what is found, by kind."""
    hits: Counter[str] = Counter()
    words = {part for said in gone for part in said.words()}
    shared = {int(number) for ids in TokenWords().token_ids([said.text for said in kept]) for number in ids}
    rows = {row: kind for said in gone for row, kind in said.rows(shared).items()}
    firsts = np.unique(np.frombuffer(b"".join(row[:8] for row in rows), "<u8"))
    for path in (path for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        hits["text"] += len(words & set(re.findall(rb"zebra\d{5}q|name\d{5}q|\d{4}-03-0[4-6]", data)))
        for shift in range(8):
            numbers = np.frombuffer(data, "<u8", max(0, len(data) - shift) // 8, shift) if len(data) > shift else []
            for at in np.flatnonzero(np.isin(numbers, firsts)) * 8 + shift:
                for length in (16, 32, 64):
                    hits[rows.get(data[at:at + length], "")] += 1
    del hits[""]
    return +hits


def filled(folder: Path, precision: str, said: Sequence[Said], gone: set[int]) -> None:
    with Memory(folder, pipeline(precision)) as memory:
        for one in said:
            memory.add(Session(one.day if one.number in gone else "3000-01-01", [("user", one.text)], one.name))
            if one.number in gone and one.number % 5 == 0:  # days that are in the rows of marks and votes alone
                memory.deprecate(one.number, since=f"{one.day[:-1]}5")
                memory.feedback({"session": one.number, "turns": [0]}, useful=True, now=f"{one.day[:-1]}6")
            if one.number == len(said) // 2:
                memory.search(one.text.split()[0], ASKED)
        memory.search("filler1", ASKED)


@pytest.mark.parametrize(("seed", "sessions"), [
    (0, 30), *(pytest.param(seed, 60, marks=pytest.mark.slow) for seed in (1, 2)),
    *(pytest.param(seed, 1000, marks=pytest.mark.nightly) for seed in range(20))])
def test_no_byte_of_a_forgotten_session_is_left(tmp_path: Path, seed: int, sessions: int) -> None:
    said, precision = Said.all(seed, sessions), PRECISIONS[seed % 3]
    gone = set(random.Random(seed).sample(range(sessions), sessions // 2))
    filled(tmp_path, precision, said, gone)
    alone, kept = [said[n] for n in sorted(gone)[::10]], [one for one in said if one.number not in gone]
    with Memory(tmp_path, pipeline(precision)) as memory:
        memory.search("filler1", ASKED)
        before = scan(tmp_path, [said[n] for n in gone], kept)
        tokens = {"fp32": {"token vector"}, "fp16": {"token vector, fp16"}, "int8": set[str]()}[precision]
        assert {"text", "vector", "key", *tokens} <= before.keys()
        assert list(tmp_path.glob("store/indexes/*"))
        assert list(tmp_path.glob("store/codes/*"))
        for one in alone:
            memory.forget(one.number)
        assert not scan(tmp_path, alone, [one for one in said if one not in alone])
        assert memory.prune(PRUNED).height == len(gone) - len(alone)
        open_ = scan(tmp_path, [said[n] for n in gone], kept)
        assert len(memory) == len(kept)
        memory.search("filler1", ASKED)
    after = scan(tmp_path, [said[n] for n in gone], kept)
    assert not open_
    assert not after
    assert scan(tmp_path, kept, [])["text"] >= len(kept)
