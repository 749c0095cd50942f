from __future__ import annotations

import json
import lzma
from datetime import timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.data.longmemeval import LongMemEval
from memlab.pipeline.tables import Tables
from memlab.stages.write.chunk import Levels, RoundChunker, SessionChunker, TurnChunker
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.stages.write.conversations import DAY, talk, written

CHAT = talk(
    [("assistant", "Welcome."), ("user", "Hi "), ("user", "I ate figs"), ("assistant", "Nice."),
     ("assistant", "More?"), ("user", "  ")],
    [("assistant", "Only me.")],
    [],
)
PEOPLE = talk([("user", "Hello", "Ann"), ("user", "Hi Ann", "Bob"), ("user", "How is it?", "Bob"),
               ("user", "Fine", "Ann")])


def made(stage: object, tables: Tables = CHAT) -> Tables:
    return tables.updated(stage.run(tables.only(stage.reads), Store()))


def test_turns_are_raw_texts_of_their_roles_and_blank_ones_are_none():
    out = made(TurnChunker(roles=["user"]))
    assert written(out) == ["Hi ", "I ate figs"]
    assert written(out, "value") == ["user: Hi ", "user: I ate figs"]
    assert out["memories"]["turns"].to_list() == [[1], [2]]
    assert out["memories"]["kind"].unique().to_list() == ["turn.user"]
    assert made(TurnChunker())["memories"]["turns"].to_list() == [[0], [1], [2], [3], [4], [0]]


def test_session_key_is_the_official_one_and_its_value_the_whole_session():
    out = made(SessionChunker(roles=["user"]))
    # as the official code: blanks joined, not stripped; an empty key where no user speaks, for BM25 counts it
    assert written(out) == [" ".join(["Hi ", "I ate figs", "  "]), ""]
    assert out["memories"]["turns"].to_list() == [[0, 1, 2, 3, 4, 5], [0]]
    assert written(out, "value")[0].startswith("assistant: Welcome.\n\nuser: Hi ")
    assert out["memories"]["said_on"].to_list() == [DAY, DAY + timedelta(days=1)]
    assert out["memories"]["session"].to_list() == [0, 1]  # none for a session without turns
    assert made(SessionChunker())["memories"]["session"].to_list() == [0, 1]


def test_rounds_begin_with_a_user_turn():
    out = made(RoundChunker())
    assert out["memories"]["turns"].to_list() == [[0], [1], [2, 3, 4], [0]]  # the blank round [5] is none
    assert written(out)[2] == "I ate figs Nice. More?"
    assert written(made(RoundChunker(roles=["user"]))) == ["Hi ", "I ate figs"]
    shown = written(made(RoundChunker(roles=["user"])), "value")
    assert shown[1] == "user: I ate figs\n\nassistant: Nice.\n\nassistant: More?"


def test_named_people_are_named_and_the_first_speaker_opens_rounds():
    assert made(RoundChunker(), PEOPLE)["memories"]["turns"].to_list() == [[0, 1, 2], [3]]
    assert written(made(TurnChunker(), PEOPLE))[:2] == ["Ann: Hello", "Bob: Hi Ann"]
    assert written(made(TurnChunker(speakers=False), PEOPLE))[:2] == ["Hello", "Hi Ann"]
    assert written(made(TurnChunker(speakers=False), PEOPLE), "value")[0] == "Ann: Hello"
    silent = talk([("user", " ", "Ann"), ("user", "Hi", "Bob")])
    assert written(made(TurnChunker(), silent)) == ["Bob: Hi"]  # a name alone is nothing said
    assert written(made(SessionChunker(roles=["user"]), PEOPLE)) == ["Ann: Hello Bob: Hi Ann Bob: How is it? Ann: Fine"]


def test_levels_number_memories_through_and_refuse_twins():
    out = made(Levels(chunkers=[TurnChunker(roles=["user"]), SessionChunker(roles=["user"]), RoundChunker()]))
    assert out["memories"]["memory"].to_list() == list(range(8))
    assert out["memories"]["kind"].unique(maintain_order=True).to_list() == ["turn.user", "session.user", "round"]
    assert out["texts"]["text_id"].is_unique().all()
    with pytest.raises(MemlabError, match="kind turn"):
        Levels(chunkers=[TurnChunker(), TurnChunker(speakers=False)])


def test_user_keys_of_longmemeval_are_the_official_ones(shared_data):
    """Recomputed from the file as the official code does: contents of user turns, joined by one space."""
    path = shared_data / "longmemeval_oracle.dev.json.xz"
    records = json.loads(lzma.decompress(path.read_bytes()))
    tables = LongMemEval(variant="oracle", path=path).load()
    sessions = [[t["content"] for t in s if t["role"] == "user"] for r in records for s in r["haystack_sessions"]]
    joined = made(SessionChunker(roles=["user"]), tables)
    assert sorted(written(joined)) == sorted(map(" ".join, sessions))
    turns = made(TurnChunker(roles=["user"]), tables)
    assert sorted(written(turns)) == sorted(t for s in sessions for t in s if t.strip())


# letters, digits, marks and spaces: Python takes some control characters for blanks that polars does not
ONE_TURN = st.tuples(st.sampled_from(["user", "assistant"]),
                     st.text(st.characters(categories=["L", "N", "P", "Zs"]), max_size=5))


@given(st.lists(st.lists(ONE_TURN, max_size=6), max_size=4))
def test_rounds_partition_the_turns_that_are_not_blank(sessions):
    tables = talk(*sessions)
    found = made(RoundChunker(), tables)["memories"].explode("turns")
    assert not found.select("session", "turns").is_duplicated().any()
    spoken = {(s, t) for s, turns in enumerate(sessions) for t, (_, text) in enumerate(turns) if text.strip()}
    assert spoken <= set(found.select("session", pl.col("turns")).iter_rows())
    turns = made(TurnChunker(), tables)["memories"].explode("turns").select("session", "turns")
    assert len(set(turns.iter_rows()) ^ spoken) == 0
