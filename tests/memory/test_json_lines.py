"""Export and import as JSON lines: what comes back is what was there."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.data.custom import Custom
from memlab.memory.memory import Memory, Session, Turn
from memlab.support.clock import has_offset
from memlab.support.errors import Faults, MemlabError
from tests.examples import fewer
from tests.small import lexical

TEXTS = st.text(st.characters(), max_size=12) | st.sampled_from(["a\nb", "\u2028", "\x7f", "\r\n", "session 0"])
NAMES = st.none() | TEXTS.filter(bool)
PLACES = st.none() | st.integers(0, 10**9)
ZONES = st.sampled_from([UTC, timezone(timedelta(hours=-7, minutes=30))])
MOMENTS = {"naive": st.datetimes(), "aware": st.datetimes(datetime(2, 1, 3), datetime(9998, 1, 1), timezones=ZONES)}
NUMBERS = st.integers(-2**63 + 1, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.none() | st.booleans() | NUMBERS | TEXTS


@st.composite
def sessions(draw: st.DrawFn) -> list[Session]:
    """Sessions of one kind of times, with names of their own."""
    moments = MOMENTS[draw(st.sampled_from(list(MOMENTS)))]
    turns = st.builds(Turn, st.sampled_from(["user", "assistant"]), TEXTS, st.none() | TEXTS, PLACES, PLACES)
    session = st.builds(
        Session, st.none() | st.dates(date(2, 1, 3), date(9998, 1, 1)) | moments, st.lists(turns, max_size=3), NAMES,
        user=NAMES, agent=NAMES, room=NAMES, source=NAMES, kind=NAMES,
        metadata=st.none() | st.dictionaries(TEXTS, PLAIN, max_size=3))
    return draw(st.lists(session, max_size=5, unique_by=lambda one: (one.name, one.name is None and id(one))))


def exact(session: Session) -> object:
    """A session with its values' types: 1, 1.0 and True are equal in Python."""
    return session, type(session.said_on), [(key, type(value)) for key, value in session.metadata.items()]


@fewer(2)
@given(sessions())
def test_a_round_trip_is_exact(tmp_path_factory: pytest.TempPathFactory, given: list[Session]) -> None:
    folder = tmp_path_factory.mktemp("memories")
    with Memory(folder / "one", lexical()) as one, Memory(folder / "two", lexical()) as two:
        numbers = one.add_many(given)
        assert one.export(folder / "sessions.jsonl") == len(given)
        if given:
            assert two.import_sessions(folder / "sessions.jsonl") == numbers
        back = [two.get(number) for number in numbers]
        assert [*map(exact, back)] == [*map(exact, given)]
        assert two.list().equals(one.list())


def test_the_file_is_data_of_an_experiment_and_its_owner_s_alone(tmp_path: Path) -> None:
    with Memory(tmp_path / "ann", lexical()) as memory:
        memory.add(Session("2023-05-20", [("user", "I adopted a cat.")]))
        memory.add(Session("2023-05-21", [("user", "Tom likes fish.")], "session 0", user="ann"))
        memory.export(tmp_path / "sessions.jsonl")
        with pytest.raises(MemlabError, match="the file is there already"):
            memory.export(tmp_path / "sessions.jsonl")
    assert (tmp_path / "sessions.jsonl").stat().st_mode & 0o777 == 0o600
    assert Custom(path=tmp_path).load()["sessions"].height == 2
    with Memory.from_folder(tmp_path, tmp_path / "again", lexical()) as memory:
        assert memory.list()["name"].to_list() == [None, "session 0"]


def test_an_import_adds_all_or_nothing(tmp_path: Path) -> None:
    line = {"corpus": "a", "session": "s1", "said_on": "2023-05-20", "turns": [{"role": "user", "text": "Hi"}]}
    file = tmp_path / "sessions.jsonl"
    with Memory(tmp_path / "ann", lexical()) as memory:
        for second, problem in (({**line, "session": "s2", "said_on": "May"}, "line 2, field said_on"),
                                ({**line, "corpus": "b"}, "2 corpora")):
            file.write_text(f"{json.dumps(line)}\n{json.dumps(second)}\n")
            with pytest.raises((Faults, MemlabError), match=problem):
                memory.import_sessions(file)
            assert len(memory) == 0
        with pytest.raises(Faults, match=r"none\.jsonl: cannot be read"):
            memory.import_sessions(tmp_path / "none.jsonl")
        file.write_text(json.dumps(line))
        assert memory.import_sessions(file) == memory.import_sessions(file) == [0]  # names count as in add
        assert not has_offset(memory.get("s1").said_on)


def test_a_turn_is_as_long_as_can_be_read_again(tmp_path: Path) -> None:
    with pytest.raises(MemlabError, match="it has 10,000,001 characters, the limit is 10,000,000"):
        Turn("user", "x" * 10_000_001)
    with Memory(tmp_path / "ann", lexical()) as memory, Memory(tmp_path / "ben", lexical()) as other:
        memory.add(Session("2023-05-20", [("user", "é" * 10_000_000)]))
        memory.export(tmp_path / "sessions.jsonl")
        assert other.import_sessions(tmp_path / "sessions.jsonl") == [0]
