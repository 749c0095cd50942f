"""Any sequence of changes of a live memory, against a model of it in plain Python."""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.memory.memory import Memory, Session
from memlab.pipeline.pipeline import Pipeline
from memlab.stages.rank.boost import Boost
from memlab.stages.rank.signals import AccessCount, Feedback
from memlab.support.errors import MemlabError
from tests.examples import fewer
from tests.small import lexical

START = date(2023, 5, 1)
NAMES = ("a", "b", "c", None)


def pipeline() -> Pipeline:
    return lexical(boost=Boost(signals=(Feedback(), AccessCount()), normaliser="minmax",
                               weights={"first": 0.9, "feedback": 0.1, "accesses": 0.05}))


def day(number: int) -> str:
    return (START + timedelta(days=number)).isoformat()


@dataclass
class Version:
    """A session: its day, or None, its turns by number, and from which day on each is no longer valid."""

    name: str | None
    said: int | None
    turns: dict[int, str]
    deprecated: dict[int, int] = field(default_factory=dict)
    newer: int | None = None


@dataclass
class Model:
    """What a memory is to hold: sessions by number, votes (session, turns, useful, day), (times, last day) returned."""

    held: dict[int, Version] = field(default_factory=dict)
    votes: list[tuple[int, set[int], bool, int]] = field(default_factory=list)
    returned: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    next: int = 0

    def add(self, name: str | None, said: int | None, texts: list[str]) -> int:
        self.held[self.next] = Version(name, said, dict(enumerate(texts)))
        self.next += 1
        return self.next - 1

    def current(self) -> list[int]:
        return [number for number, version in self.held.items() if version.newer is None]

    def forget(self, number: int, turns: list[int] | None) -> None:
        for old in [old for old, version in self.held.items() if version.newer == number]:
            self.forget(old, None)
        left = {} if turns is None else {n: text for n, text in self.held[number].turns.items() if n not in turns}
        gone = set(self.held[number].turns) - set(left)
        self.votes = [(s, where - gone if s == number else where, useful, on) for s, where, useful, on in self.votes]
        self.returned = {place: row for place, row in self.returned.items() if place[0] != number or place[1] in left}
        if left:
            self.held[number].turns = left
            self.held[number].deprecated = {n: d for n, d in self.held[number].deprecated.items() if n in left}
        else:
            del self.held[number]

    def valid(self, number: int, turn: int, on: int) -> bool:
        version = self.held[number]
        newer, replaced = version.newer, False
        while newer is not None:  # a later version ends all older ones
            replaced |= (self.held[newer].said or -1) <= on
            newer = self.held[newer].newer
        return not replaced and version.deprecated.get(turn, 10**6) > on

    def found(self, on: int) -> dict[tuple[int, int], str]:
        """What a question of a day finds, by session and turn."""
        return {(number, turn): text for number, version in self.held.items() if (version.said or -1) <= on
                for turn, text in version.turns.items() if self.valid(number, turn, on)}

    def share(self, number: int, turn: int, on: int) -> float:
        """The share of good votes on a turn as of a day."""
        said = [useful for session, turns, useful, when in self.votes
                if session == number and turn in turns and when <= on]
        return (sum(said) + 1) / (len(said) + 2)


def check(memory: Memory, model: Model, on: int) -> None:
    """Compare a memory with the model as of a day."""
    expected = model.found(on)
    found = memory.search("common", day(on), 10_000)
    rows = {(row["session"], row["turns"][0]): row for row in found.iter_rows(named=True)}
    assert {place: row["text"] for place, row in rows.items()} == expected
    for place, row in rows.items():
        times, last = model.returned.get(place, (0, on))
        assert abs(row["feedback"] - model.share(*place, on)) < 1e-9
        assert abs(row["accesses"] - (math.log(1 + times) if last <= on else 0)) < 1e-9
        model.returned[place] = times + 1, max(last, on)
    listed = memory.list(versions=True)
    assert {row["session"]: (row["name"], row["turns"], row["deprecated"], row["newer"])
            for row in listed.iter_rows(named=True)} == {
        number: (v.name, len(v.turns), len(v.deprecated) or None, v.newer) for number, v in model.held.items()}
    assert memory.count() == len(model.current())
    told = memory.history("common", day(on), 10_000)
    assert {(row["session"], row["turns"][0]): row["valid"] for row in told.iter_rows(named=True)} == {
        (number, turn): model.valid(number, turn, on) for number, v in model.held.items() if (v.said or -1) <= on
        for turn in v.turns}


def step(memory: Memory, model: Model, draw: st.DrawFn | Any) -> None:
    """Make one drawn change of both."""
    known = sorted(model.held)
    action = draw(st.sampled_from(["add", *(["update", "update", "deprecate", "restore", "feedback", "forget"]
                                            if known else [])]))
    texts = [f"common word{model.next}x{n}" for n in range(draw(st.integers(1, 3)))]
    said = draw(st.none() | st.integers(0, 20))
    if action == "add":
        name = draw(st.sampled_from(NAMES))
        session = Session(None if said is None else day(said), [("user", text) for text in texts], name)
        if name is not None and name in [model.held[number].name for number in model.current()]:
            try:
                memory.add(session)
            except MemlabError:
                return
            raise AssertionError("a second session of one name")
        assert memory.add(session) == model.add(name, said, texts)
        return
    number = draw(st.sampled_from(known))
    version = model.held[number]
    turns = draw(st.none() | st.lists(st.sampled_from(sorted(version.turns)), min_size=1, unique=True))
    if action == "update":
        keep = draw(st.booleans())
        session = Session(None if said is None else day(said), [("user", text) for text in texts])
        try:
            new = memory.update(number, session, keep_old=keep)
        except MemlabError:
            assert version.newer is not None
            return
        assert version.newer is None
        assert new == model.add(version.name, said, texts)
        if keep:
            version.newer = new
        else:
            model.forget(number, None)
    elif action == "deprecate":
        since = draw(st.none() | st.integers(0, 20))
        memory.deprecate(number, turns, None if since is None else day(since))
        version.deprecated |= dict.fromkeys(turns or version.turns, -1 if since is None else since)
    elif action == "restore":
        memory.restore(number, turns)
        version.deprecated = {n: d for n, d in version.deprecated.items() if turns is not None and n not in turns}
    elif action == "feedback":
        on, useful = draw(st.integers(0, 20)), draw(st.booleans())
        places = turns or sorted(version.turns)
        memory.feedback({"session": number, "turns": places}, useful, day(on))
        model.votes.append((number, set(places), useful, on))
    else:
        memory.forget(number, turns)
        model.forget(number, turns)


@pytest.mark.slow
@fewer(50)
@given(st.data())
def test_any_sequence_of_changes(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        memory, model = Memory(Path(folder), pipeline()), Model()
        for _ in range(data.draw(st.integers(1, 12))):
            step(memory, model, data.draw)
            if data.draw(st.integers(0, 3)) == 0:
                memory.close()
            if data.draw(st.integers(0, 2)) == 0:
                check(memory, model, data.draw(st.integers(0, 22)))
        check(memory, model, 22)
        memory.close()
