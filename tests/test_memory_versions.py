"""New versions of sessions, and turns that are no longer valid: no search finds the old, and history shows it."""

from __future__ import annotations

import gc
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from polars.testing import assert_frame_equal

from memlab.errors import MemlabError
from memlab.memory import Memory, Session
from memlab.pipeline import Pipeline
from memlab.search.dense import Dense
from memlab.store import Store
from memlab.tables import Tables
from memlab.write.chunk import SessionChunker
from memlab.write.prune import Age, Deprecated
from tests.query.test_where import PIPELINES, sessions
from tests.search.world import WordEmbedder
from tests.small import lexical
from tests.test_memory_forgotten import everything

CAT = Session("2023-05-20", [("user", "I adopted a cat named Tom."), ("assistant", "A cat, lovely!")], "cat",
              user="ann")
NEW = Session("2023-07-01", [("user", "My cat is called Otto now.")], "cat", user="ann")
HEN = Session("2023-05-21", [("user", "I have a hen.")], "hen")
ASKED = "Which cat or boat did Ann buy in Lisbon?"


def words(memory: Memory, now: str, question: str = "cat hen") -> list[str]:
    return sorted(memory.search(question, now, 100)["text"])


def test_an_update_is_found_from_its_day_on_and_the_old_version_before(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        assert [memory.add(CAT), memory.add(HEN)] == [0, 1]
        assert memory.update("cat", NEW) == 2
        old, hen, new = [turn.text for turn in CAT.turns], HEN.turns[0].text, NEW.turns[0].text
    for _ in range(2):
        with Memory(tmp_path, lexical()) as memory:
            assert words(memory, "2023-06-30") == sorted([*old, hen])
            assert words(memory, "2023-07-01") == sorted([hen, new])
            assert memory.get("cat") == memory.get(2) == NEW
            assert memory.get(0) == CAT
            assert memory.count() == len(memory) == memory.list().height == 2
            assert memory.list(versions=True).select("session", "name", "newer").rows() == [
                (0, "cat", 2), (1, "hen", None), (2, "cat", None)]


def test_history_shows_each_version_with_its_days(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(CAT)
        memory.update("cat", NEW)
        memory.deprecate("cat", [0], since="2023-09-01")
        spans = memory.history("cat", "2024-01-01", 10).select("session", "turns", "valid_from", "valid_to", "valid")
        first, second, third = datetime(2023, 5, 20), datetime(2023, 7, 1), datetime(2023, 9, 1)
        assert spans.rows() == [(0, [0], first, second, False), (0, [1], first, second, False),
                                (1, [0], second, third, False)]
        spans = memory.history("cat", "2023-08-01", 10).select("session", "valid_to", "valid")
        assert spans.rows() == [(0, second, False), (0, second, False), (1, None, True)]
        assert memory.history("cat", "2023-06-01", 10)["valid"].to_list() == [True, True]  # as of that day


def test_messages_keep_what_the_old_version_had(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(CAT)
        memory.update(0, [{"role": "user", "content": "I adopted a cat named Tim."}])
        assert memory.get("cat") == Session("2023-05-20", [("user", "I adopted a cat named Tim.")], "cat", user="ann")
        assert words(memory, "2023-05-20") == ["I adopted a cat named Tim."]  # corrected: never as before
        told = memory.history("cat", "2023-06-01", 10)
        assert told.select("valid_from", "valid_to", "valid").rows()[0] == (
            datetime(2023, 5, 20), datetime(2023, 5, 20), False)
        memory.update("cat", [{"role": "user", "content": "Tim is a cat."}], said_on="2023-08-01", user="bob")
        assert memory.get("cat") == Session("2023-08-01", [("user", "Tim is a cat.")], "cat", user="bob")


def test_a_version_without_a_date_replaces_the_old_one_at_all_times(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(CAT)
        memory.update("cat", Session(None, [("user", "No cat at all.")]))
        assert memory.get("cat").name == "cat"
        assert words(memory, "2023-01-01") == words(memory, "2024-01-01") == ["No cat at all."]


@pytest.mark.parametrize("last", ["2023-05-25", None])
def test_a_version_that_is_dated_before_the_one_it_replaces_ends_all_earlier_ones(tmp_path: Path, last: str | None
                                                                                  ) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(CAT)
        memory.update("cat", NEW)
        memory.update("cat", Session(last, [("user", "No cat at all.")]))
        for day in ("2023-05-25", "2023-06-15", "2023-07-01", "2024-01-01"):
            assert words(memory, day) == ["No cat at all."]
        assert words(memory, "2023-05-24") == (
            ["A cat, lovely!", "I adopted a cat named Tom."] if last else ["No cat at all."])


def test_no_table_in_memory_holds_what_is_forgotten(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        text = "The word that opens it is heron."
        memory.add_many([CAT, Session("2023-05-21", [("user", text)], "word")])
        memory.deprecate("cat", [0])
        assert words(memory, "2024-01-01", "heron cat") == ["A cat, lovely!", text]
        memory.forget("word")
        gc.collect()
        assert not [one for one in gc.get_objects() if isinstance(one, Tables) and text in one["texts"]["text"]]


def test_turns_may_be_numbers_of_numpy(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(CAT)
        turns = np.array([0])
        memory.feedback({"session": np.int64(0), "turns": turns}, useful=True)
        memory.deprecate(np.int64(0), turns)  # type: ignore[arg-type]
    with Memory(tmp_path, lexical()) as memory:
        assert words(memory, "2024-01-01") == ["A cat, lovely!"]
        memory.restore("cat", turns)
        memory.forget("cat", turns)
        assert memory.get("cat").turns == CAT.turns[1:]


def test_the_same_version_again_changes_nothing(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(CAT)
        assert memory.update("cat", CAT) == 0
        assert [memory.update("cat", NEW), memory.update("cat", NEW), memory.update(1, NEW)] == [1, 1, 1]
        assert memory.list(versions=True).height == 2
        assert [memory.add(NEW), memory.add(CAT), *memory.add_many([CAT, HEN])] == [1, 1, 1, 2]  # known versions


@pytest.mark.parametrize(("old", "new"), [(1, True), (False, 0), (1, 1.0), (None, "None")])
def test_a_change_of_metadata_is_a_change_where_python_sees_none(tmp_path: Path, old: Any, new: Any) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(Session("2023-05-20", [("user", "cat")], "a", metadata={"done": old}))
        other = Session("2023-05-20", [("user", "cat")], "a", metadata={"done": new})
        with pytest.raises(MemlabError, match="other words or fields"):
            memory.add(other)
        assert memory.update("a", other) == 1
        assert repr(memory.get("a").metadata) == repr({"done": new})


def test_metadata_can_be_cleared(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(Session("2023-05-20", [("user", "cat")], "a", metadata={"done": 1}))
        memory.update("a", [{"role": "user", "content": "dog"}])
        assert memory.get("a").metadata == {"done": 1}
        memory.update("a", [{"role": "user", "content": "hen"}], metadata={})
        assert memory.get("a").metadata == {}


def test_a_filter_deprecates_no_earlier_version_and_restore_takes_it_back(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(Session("2023-05-20", [("user", "my cat Tom")], "cat"))
        memory.update("cat", Session("2023-07-01", [("user", "my cat Otto")]))
        for where in ({"name": "cat"}, {"name": "cat", "role": "user"}):
            memory.deprecate(where=where)
            assert memory.search("cat", "2023-06-01")["text"].to_list() == ["my cat Tom"]
            assert memory.search("cat", "2023-08-01").is_empty()
            memory.restore("cat")
            assert memory.search("cat", "2023-08-01")["text"].to_list() == ["my cat Otto"]


def test_a_version_takes_a_name_that_is_free(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add_many([CAT, HEN])
        with pytest.raises(MemlabError, match="there is a session 'hen'"):
            memory.update("cat", Session("2023-07-01", [("user", "Hi")], "hen"))
        memory.update("cat", Session("2023-07-01", [("user", "Otto is a cat.")], "otto"))
        with pytest.raises(MemlabError, match="there is no session 'cat'"):
            memory.get("cat")
        with pytest.raises(MemlabError, match=r"session 0 has a newer version.*update session 2"):
            memory.update(0, NEW)
        assert memory.add(CAT) == 3  # a session of its own
    with Memory(tmp_path, lexical()) as memory:
        assert (memory.get("otto").said_on, memory.add(CAT)) == (memory.get(2).said_on, 3)


def test_an_old_version_that_is_not_kept_leaves_the_disk(tmp_path: Path) -> None:
    pipeline = Pipeline(dense=Dense(embedder=WordEmbedder()))
    with Memory(tmp_path, pipeline) as memory:
        memory.add(CAT)
        memory.update("cat", NEW)
        memory.search("Tom", "2023-08-01")
        last = Session("2023-08-01", [("user", "My cat is gone.")])
        assert memory.update("cat", last, keep_old=False) == 2
        assert memory.list(versions=True)["session"].to_list() == [2]
        assert b"Tom" not in everything(tmp_path)
        assert b"Otto" not in everything(tmp_path)
    with Memory(tmp_path, pipeline) as memory:
        assert memory.search("cat", "2023-09-01", 5)["text"].to_list() == ["My cat is gone."]
        assert memory.add(HEN) == 3


def test_what_is_forgotten_takes_its_earlier_versions_with_it(tmp_path: Path) -> None:
    two = Session("2023-07-01", [("user", "The cat eats."), ("user", "The cat sleeps.")], "cat")
    for forgotten, left in ((("cat",), [1]), (("cat", [0]), [1, 3]), ((2,), [1, 3])):
        folder = tmp_path / str(len(forgotten))
        with Memory(folder / str(forgotten[0]), lexical()) as memory:
            memory.add_many([CAT, HEN])
            memory.update("cat", NEW)
            memory.update("cat", two)
            memory.forget(*forgotten)
            assert memory.list(versions=True)["session"].sort().to_list() == left
            assert b"Tom" not in everything(folder / str(forgotten[0]))
    with Memory(tmp_path / "where", lexical()) as memory:
        memory.add_many([CAT, HEN])
        memory.update("cat", two)
        memory.forget(where={"user": "ann"})  # of the old version alone
        assert memory.list(versions=True)["session"].sort().to_list() == [1, 2]


def test_a_deprecated_turn_is_left_out_and_can_be_restored(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add_many([CAT, HEN])
        memory.deprecate("cat", [0])
        assert words(memory, "2023-05-20") == ["A cat, lovely!"]
        assert words(memory, "2999-01-01") == ["A cat, lovely!", "I have a hen."]
        assert memory.list()["deprecated"].to_list() == [1, None]
        memory.deprecate(1, since="2023-06-01")
    with Memory(tmp_path, lexical()) as memory:
        assert words(memory, "2023-05-31") == ["A cat, lovely!", "I have a hen."]
        assert words(memory, "2023-06-01") == ["A cat, lovely!"]
        told = memory.history("cat hen", "2023-07-01", 10).select("session", "turns", "valid_to", "valid")
        assert told.rows() == [(0, [0], datetime(2023, 5, 20), False), (0, [1], None, True),
                               (1, [0], datetime(2023, 6, 1), False)]
        memory.restore("cat")
        memory.restore("hen", [0])
        memory.restore("hen")
    with Memory(tmp_path, lexical()) as memory:
        assert words(memory, "2023-07-01") == sorted(turn.text for turn in (*CAT.turns, *HEN.turns))
        assert memory.list()["deprecated"].to_list() == [None, None]


def test_an_earlier_version_can_be_marked_too(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(CAT)
        memory.update("cat", NEW)
        memory.deprecate(0, since="2023-06-01")
        assert memory.get("cat") == NEW
        assert (words(memory, "2023-05-31"), words(memory, "2023-06-30")) == (sorted(t.text for t in CAT.turns), [])
        memory.restore(0)
        assert memory.get("cat") == NEW
        assert words(memory, "2023-06-30") == sorted(turn.text for turn in CAT.turns)


def test_what_is_not_valid_any_more_does_not_count_as_said(tmp_path: Path) -> None:
    nameless = Session("2023-08-01", CAT.turns, user="ann")
    with Memory(tmp_path, lexical()) as memory:
        memory.add(CAT)
        assert memory.add(nameless, unique=True) == 0
        memory.deprecate("cat", [1])
        assert memory.add(nameless, unique=True) == 1
        memory.restore("cat")
        assert memory.add(nameless, unique=True) == 1
        memory.update("cat", NEW)
        assert memory.add(nameless, unique=True) == 1


def test_pruning_and_forgetting_go_on_beside_what_is_no_longer_valid(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical(prune=Age(days=90))) as memory:
        memory.add_many([CAT, HEN])
        memory.deprecate("cat", [1])
        memory.update("hen", Session("2024-01-01", [("user", "I have two hens.")]))
        assert memory.prune("2023-06-01").is_empty()
        assert memory.history("cat hen", "2023-06-01", 10).height == 3
        assert sorted(memory.prune("2024-01-02").rows()) == [(0, None), (1, None)]
        assert memory.list(versions=True)["session"].to_list() == [2]


def test_pruning_does_not_look_at_what_is_said_later(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical(prune=Deprecated())) as memory:
        memory.add(CAT)
        memory.update("cat", [{"role": "user", "content": "Status: deprecated. My cat is gone."}], "2024-01-01")
        assert memory.prune("2023-06-01").is_empty()
        assert words(memory, "2023-06-01") == sorted(turn.text for turn in CAT.turns)
        assert sorted(memory.prune("2024-01-01").rows()) == [(0, None), (1, None)]
        assert memory.list(versions=True).is_empty()


def test_an_export_holds_what_is_valid_today(tmp_path: Path) -> None:
    with Memory(tmp_path / "ann", lexical()) as memory, Memory(tmp_path / "ben", lexical()) as other:
        memory.add_many([CAT, HEN, Session("2023-05-22", [("user", "I have a boat."), ("user", "It is red.")], "boat")])
        memory.update("cat", NEW)
        memory.deprecate("hen", since="2023-07-01")
        memory.deprecate("boat", [1], since="2999-01-01")
        memory.update("boat", [{"role": "user", "content": "I have a new boat."}], "2999-06-01")
        with pytest.warns(UserWarning, match="2 turns will not be valid from a later day on"):
            memory.export(tmp_path / "ann.jsonl")
        other.import_sessions(tmp_path / "ann.jsonl")
        assert words(other, "2024-01-01", "cat hen boat red") == words(memory, "2024-01-01", "cat hen boat red")
        assert other.list()["name"].to_list() == [None, "cat", "boat"]


@pytest.mark.parametrize(("name", "store"), [*((name, False) for name in PIPELINES), ("related", True)])
def test_searches_are_those_of_a_memory_without_what_is_no_longer_valid(tmp_path: Path, name: str, store: bool
                                                                        ) -> None:
    pipeline = PIPELINES[name]
    told, shared = sessions(), Store(tmp_path / "store") if store else None
    old, whole, part = told[:5], told[5:8], [session for session in told[8:] if len(session.turns) > 1][:4]
    with Memory(tmp_path / "ann", pipeline, shared) as memory, Memory(tmp_path / "bare", pipeline, shared) as bare:
        for one in (memory, bare):
            one.add_many(told)
            one.search(ASKED, "2023-06-20", 100)
        new = [Session("2023-06-01", [("user", f"Ann sold the boat {n} in Lisbon.")], session.name)
               for n, session in enumerate(old)]
        for session, version in zip(old, new):
            memory.update(session.name, version)
            bare.forget(session.name)
            bare.add(version)
        for session in whole:
            memory.deprecate(session.name)
            bare.forget(session.name)
        for session in part:
            memory.deprecate(session.name, [0])
            bare.forget(session.name, [0])
        for where in (None, {"role": "user"}, {"room": "kitchen"}):
            for _ in range(2):
                found = memory.search(ASKED, "2023-06-20", 200, where=where)
                assert_frame_equal(found, bare.search(ASKED, "2023-06-20", 200, where=where))
        before = memory.search(ASKED, "2023-05-25", 200)["session"]
        assert set(before) & set(range(5))  # the old versions, as of an earlier day
    with Memory(tmp_path / "ann", pipeline, shared) as memory:
        assert_frame_equal(memory.search(ASKED, "2023-06-20", 200, where=where), found)


def test_a_session_of_which_a_part_is_valid_is_searched_by_that_part(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical(chunk=SessionChunker())) as memory:
        memory.add(CAT)
        memory.deprecate("cat", [1], since="2023-06-01")
        assert "lovely" in memory.search("cat", "2023-05-31")["text"][0]
        assert memory.search("cat", "2023-06-01")["text"].to_list() == [CAT.turns[0].text]


WRONG: list[tuple[Any, str]] = [
    (lambda memory: memory.update("dog", NEW), "there is no session 'dog'"),
    (lambda memory: memory.update("cat", None), "expected a list of messages, got NoneType"),
    (lambda memory: memory.update("cat", NEW, said_on="2023-01-01"), "a Session has its own date"),
    (lambda memory: memory.update("cat", NEW, keep_old="no"), "keep_old: expected true or false, got str"),
    (lambda memory: memory.update("cat", Session("2023-05-20T10:00+02:00", [("user", "Hi")])), "UTC offset"),
    (lambda memory: memory.deprecate("cat", [7]), r"session 0 has no turns \[7\]"),
    (lambda memory: memory.deprecate("cat", since="May"), "since: 'May' is no date"),
    (lambda memory: memory.deprecate(None), "nothing is named"),
    (lambda memory: memory.restore("cat", 5), "session 0 has no turns 5")]


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_a_change_that_cannot_be_made_is_refused_and_changes_nothing(tmp_path: Path, call: Any, message: str) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(Session("2023-05-20T10:00", CAT.turns, "cat"))
        before = memory.list(versions=True)
        with pytest.raises(MemlabError, match=message):
            call(memory)
        assert_frame_equal(memory.list(versions=True), before)
