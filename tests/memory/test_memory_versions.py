"""New versions of sessions, and turns that are no longer valid: no search finds the old, and history shows it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

from memlab.memory.memory import Memory, Session
from memlab.stages.write.chunk import SessionChunker
from memlab.stages.write.prune import Deprecated
from memlab.support.errors import MemlabError
from tests.small import lexical
from tests.stages.query.test_where import PIPELINES, sessions

CAT = Session("2023-05-20", [("user", "I adopted a cat named Tom."), ("assistant", "A cat, lovely!")], "cat",
              user="ann")
NEW = Session("2023-07-01", [("user", "My cat is called Otto now.")], "cat", user="ann")
HEN = Session("2023-05-21", [("user", "I have a hen.")], "hen")
ASKED = "Which cat or boat did Ann buy in Lisbon?"


def words(memory: Memory, now: str, question: str = "cat hen") -> list[str]:
    return sorted(memory.search(question, now, 100)["text"])


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


def test_the_same_version_again_changes_nothing(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(CAT)
        assert memory.update("cat", CAT) == 0
        assert [memory.update("cat", NEW), memory.update("cat", NEW), memory.update(1, NEW)] == [1, 1, 1]
        assert memory.list(versions=True).height == 2
        assert [memory.add(NEW), memory.add(CAT), *memory.add_many([CAT, HEN])] == [1, 1, 1, 2]  # known versions


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


@pytest.mark.parametrize("name", PIPELINES)
def test_searches_are_those_of_a_memory_without_what_is_no_longer_valid(tmp_path: Path, name: str) -> None:
    pipeline, told = PIPELINES[name], sessions()
    old, whole, part = told[:5], told[5:8], [session for session in told[8:] if len(session.turns) > 1][:4]
    with Memory(tmp_path / "ann", pipeline) as memory, Memory(tmp_path / "bare", pipeline) as bare:
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
    with Memory(tmp_path / "ann", pipeline) as memory:
        assert_frame_equal(memory.search(ASKED, "2023-06-20", 200, where=where), found)


def test_a_session_of_which_a_part_is_valid_is_searched_by_that_part(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical(chunk=SessionChunker())) as memory:
        memory.add(CAT)
        memory.deprecate("cat", [1], since="2023-06-01")
        assert "lovely" in memory.search("cat", "2023-05-31")["text"][0]
        assert memory.search("cat", "2023-06-01")["text"].to_list() == [CAT.turns[0].text]


WRONG: list[tuple[Any, str]] = [
    (lambda memory: memory.update("dog", NEW), "there is no session 'dog'"),
    (lambda memory: memory.update("cat", None), "new: None does not fit. Fix: write"),
    (lambda memory: memory.update("cat", NEW, said_on="2023-01-01"), "a Session has its own date"),
    (lambda memory: memory.update("cat", Session("2023-05-20T10:00+02:00", [("user", "Hi")])), "UTC offset"),
    (lambda memory: memory.deprecate("cat", [7]), r"session 0 has no turns \[7\]"),
    (lambda memory: memory.deprecate("cat", since="May"), "since: 'May' is no date"),
    (lambda memory: memory.deprecate(None), "nothing is named")]


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_a_change_that_cannot_be_made_is_refused_and_changes_nothing(tmp_path: Path, call: Any, message: str) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(Session("2023-05-20T10:00", CAT.turns, "cat"))
        before = memory.list(versions=True)
        with pytest.raises(MemlabError, match=message):
            call(memory)
        assert_frame_equal(memory.list(versions=True), before)
