"""Files of other kinds in the folder of a live memory: it answers, or says what is wrong, and waits for none."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import polars as pl
import pytest

from memlab.errors import MemlabError
from memlab.memory import Memory, Session
from memlab.pipeline import Pipeline
from memlab.search.dense import Dense
from memlab.search.late_interaction import WeightedLate
from tests.forged import KINDS, forge
from tests.fuzz.mutation import outcome
from tests.search.world import WordEmbedder
from tests.token_words import TokenWords

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
PIPELINE = Pipeline(dense=Dense(embedder=WordEmbedder()), late=WeightedLate(matcher=TokenWords()))


def used(folder: Path) -> pl.DataFrame:
    with Memory(folder, PIPELINE) as memory:
        memory.add(Session("2023-06-03", [("user", "I bought a tent.")]))
        memory.forget(0)
        return memory.search("Where is the boat?", "2023-07-01")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", ["memory.db", "memory.db-wal", "memory.db-shm", "memory.db-journal",
                                   "store/vectors/*/*.segment", "store/vectors/*/identity.json", "store/vectors",
                                   "store", "store/tokens/*/*.segment", "store/tokens"])
def test_a_forged_file_is_named_or_computed_again(place: str, kind: str, tmp_path: Path) -> None:
    with Memory(tmp_path, PIPELINE) as memory:
        memory.add(Session("2023-06-01", [("user", "I live in Oslo.")]))
        memory.add(Session("2023-06-02", [("user", "My boat is in the harbour.")]))
    for path in list(tmp_path.glob(place)) or [tmp_path / place]:
        forge(path, kind)
    seen = outcome(lambda: used(tmp_path))
    assert isinstance(seen, MemlabError) or "boat" in seen["text"][0]
    assert not place.endswith(".segment") or not isinstance(seen, MemlabError) or kind == "folder"


DAMAGE = """
DELETE FROM counter
UPDATE counter SET next = 'x'
UPDATE counter SET next = -5
UPDATE counter SET next = 9223372036854775807
UPDATE counter SET next = 0
UPDATE counter SET sessions = 5
UPDATE counter SET digest = 'x'
UPDATE counter SET cleared = 0
UPDATE counter SET cleared = 'x'
INSERT INTO counter VALUES (7, 2, 0, 1)
UPDATE accesses SET session = 'x' || session
UPDATE accesses SET session = session + (1 << 50)
UPDATE accesses SET turn = -1
UPDATE accesses SET times = 1e300
UPDATE accesses SET last = 5
UPDATE sessions SET id = id - 9
UPDATE sessions SET digest = 5
UPDATE sessions SET content = 5
DELETE FROM forgotten_key
UPDATE forgotten_key SET key = 5
DROP TABLE sessions
DROP TABLE token_centroids
DROP TABLE token_codes
"""


@pytest.mark.parametrize("damage", DAMAGE.strip().splitlines())
def test_a_value_of_another_kind_in_a_table_is_named_or_computed_again(damage: str, tmp_path: Path) -> None:
    with Memory(tmp_path, PIPELINE) as memory:
        memory.add(Session("2023-06-01", [("user", "I live in Oslo.")]))
        memory.add(Session("2023-06-02", [("user", "My boat is in the harbour.")]))
        memory.search("Where is the boat?", "2023-07-01")
    database = sqlite3.connect(tmp_path / "memory.db")
    with database:
        database.execute(damage)
    database.close()
    assert isinstance(outcome(lambda: used(tmp_path)), MemlabError | pl.DataFrame)


def test_a_counter_that_lags_behind_costs_no_session(tmp_path: Path) -> None:
    with Memory(tmp_path, PIPELINE) as memory:
        memory.add(Session("2023-06-01", [("user", "I live in Oslo.")]))
        memory.add(Session("2023-06-02", [("user", "My boat is in the harbour.")]))
    database = sqlite3.connect(tmp_path / "memory.db")
    with database:
        database.execute("UPDATE counter SET next = 0")
    database.close()
    with Memory(tmp_path, PIPELINE) as memory:
        assert memory.add(Session("2023-06-03", [("user", "I bought a tent.")])) == 2
        assert len(memory) == 3
