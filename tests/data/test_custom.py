from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from memlab.data.custom import Custom
from memlab.data.dataset import Dataset
from memlab.data.jsonl import read
from memlab.pipeline.tables import Tables, as_of
from memlab.support.errors import Faults, MemlabError

SESSIONS = [
    {"corpus": "ann", "session": "late", "said_on": "2023-05-21T08:00:00+02:00", "turns": [
        {"role": "user", "text": "The cat is called Tom."}]},
    {"corpus": "ann", "session": "early", "said_on": "2023-05-20", "turns": [
        {"role": "user", "text": "I adopted a cat.", "speaker": "Ann"}, {"role": "assistant", "text": "Lovely!"}]},
    {"corpus": "bob", "session": "early", "said_on": "2023-01-01", "turns": []},  # nothing was said
]
QUESTIONS = [
    {"question": "q1", "corpus": "ann", "text": "Which pet?", "asked_on": "2023-05-21", "answer": "a cat",
     "category": "pets", "evidence": [{"session": "early", "turn": 0}, {"session": "late"}]},
    {"question": "q2", "corpus": "ann", "text": "Which dog?", "abstain": True},
]


def folder(path: Path, sessions: list, questions: list) -> Path:
    for name, lines in (("sessions", sessions), ("questions", questions)):
        said = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        (path / f"{name}.jsonl").write_text("\n".join(said) + "\n", "utf-8")
    return path


def validate(path: Path, timezone: str = "UTC") -> list[str]:
    return read(path, ZoneInfo(timezone)).faults


def test_a_folder_becomes_tables(tmp_path):
    data = Custom(path=str(folder(tmp_path, SESSIONS, QUESTIONS)))
    assert isinstance(data, Dataset)
    tables = data.load()
    assert tables["sessions"].filter(corpus=0)["said_on"].to_list() == [datetime(2023, 5, 20), datetime(2023, 5, 21, 6)]
    texts = dict(tables["texts"].iter_rows())
    assert [(s, t, r, n, texts[h]) for _, s, t, r, n, h in tables["turns"].iter_rows()] == [
        (0, 0, "user", "Ann", "I adopted a cat."), (0, 1, "assistant", None, "Lovely!"),
        (1, 0, "user", None, "The cat is called Tom.")]
    assert tables["questions"]["asked_on"].to_list() == [datetime(2023, 5, 21), datetime(2023, 5, 21, 6)]
    assert tables["evidence"].rows() == [(0, 0, 0), (0, 1, None)]
    assert tables["gold"].rows() == [(0, "a cat", "pets", False, True, None), (1, None, "all", True, False, None)]
    assert tables["ids"].filter(kind="session")["name"].to_list() == ["early", "late", "early"]
    assert data.grouping() == "auto"
    assert "Questions without a date: 1. The day of the last session" in data.notes()[0]


def test_every_fault_is_named_by_file_line_and_field(tmp_path):
    sessions = [
        *SESSIONS,
        {"corpus": "ann", "session": "x", "said_on": "yesterday", "turns": [{"role": "bot", "text": 3, "name": "A"}]},
        {"corpus": "ann", "sesion": "x", "said_on": "2023-05-20", "turns": {}},
        "{'corpus': 1}", "",
        SESSIONS[0],
    ]
    questions = [{"question": "q1", "corpus": "ann"}, {**QUESTIONS[0], "asked": "2023-01-01"}, QUESTIONS[1],
                 {**QUESTIONS[1], "corpus": "anne", "abstain": "no"}, {**QUESTIONS[1], "corpus": "nobody"}]
    path = folder(tmp_path, sessions, questions)
    faults = validate(path)
    for place, words in [
        ("sessions.jsonl, line 4, field said_on", "expected a date"),
        ("sessions.jsonl, line 4, field turns[0].role", "'user' or 'assistant'"),
        ("sessions.jsonl, line 4, field turns[0].text", "valid string"),
        ("sessions.jsonl, line 4, field turns[0].name", "known: offset, page, role, speaker, text"),
        ("sessions.jsonl, line 5, field session", "missing"),
        ("sessions.jsonl, line 5, field sesion", "did you mean 'session'?"),
        ("sessions.jsonl, line 5, field turns", "array"),
        ("sessions.jsonl, line 6", "invalid JSON"),
        ("sessions.jsonl, line 8, field session", "'late' was there before in 'ann'"),
        ("questions.jsonl, line 1, field text", "missing"),
        ("questions.jsonl, line 2, field asked", "did you mean 'asked_on'?"),
        ("questions.jsonl, line 4, field abstain", "boolean"),
        ("questions.jsonl, line 5, field question", "'q2' was there before"),
    ]:
        assert any(f.startswith(f"{place}:") and words in f for f in faults), (place, faults)
    assert len(faults) == 13
    with pytest.raises(Faults, match="13 faults"):
        Custom(path=path).load()


def test_evidence_must_exist_and_be_said_in_time(tmp_path):
    questions = [{**QUESTIONS[0], "asked_on": "2023-05-20", "evidence": [
        {"session": "early", "turn": 2}, {"session": "erly"}, {"session": "late"}]}]
    faults = validate(folder(tmp_path, SESSIONS, questions))
    assert [f.split(": ")[0] for f in faults] == [
        f"questions.jsonl, line 1, field evidence[{i}].{name}" for i, name in enumerate(["turn", "session", "session"])]
    assert "has 2 turns" in faults[0]
    assert "after the question" in faults[2]


def test_without_questions_the_sessions_are_read(tmp_path):
    data = Custom(path=folder(tmp_path, SESSIONS, QUESTIONS))
    with_questions = data.identity()
    assert Custom(path=folder(tmp_path, SESSIONS[:2], QUESTIONS)).identity() != with_questions
    folder(tmp_path, SESSIONS, QUESTIONS)
    assert data.identity() == with_questions
    (tmp_path / "questions.jsonl").unlink()
    assert validate(tmp_path) == []
    assert data.load()["turns"].height == 3
    assert data.load()["questions"].height == 0
    assert "There are no questions, so nothing is measured" in data.notes()[0]
    assert data.identity() != with_questions
    (tmp_path / "questions.jsonl").touch()
    assert validate(tmp_path) == ["questions.jsonl: there is no line in it"]


def test_a_session_may_have_no_date_and_stands_first(tmp_path):
    undated = {**SESSIONS[0], "session": "undated", "said_on": None}
    tables = Custom(path=folder(tmp_path, [*SESSIONS, undated], QUESTIONS)).load()
    assert tables["sessions"].filter(corpus=0)["said_on"].to_list() == [
        None, datetime(2023, 5, 20), datetime(2023, 5, 21, 6)]
    assert tables["questions"]["asked_on"].to_list()[1] == datetime(2023, 5, 21, 6)
    tables = Custom(path=folder(tmp_path, [undated], [{**QUESTIONS[1]}])).load()
    assert tables["questions"]["asked_on"].to_list() == [None]


@pytest.mark.parametrize("separator", ["\u2028", "\x0b", "\x85"])
def test_a_line_separator_inside_a_text_ends_no_line(tmp_path, separator):
    turn = {"role": "user", "text": f"one{separator}two"}
    line = json.dumps({**SESSIONS[0], "turns": [turn]}, ensure_ascii=separator == "\x0b")
    folder(tmp_path, [line], [])
    (tmp_path / "questions.jsonl").unlink()
    assert validate(tmp_path) == []
    assert turn["text"] in Custom(path=tmp_path).load()["texts"]["text"].to_list()


def test_missing_empty_and_undecodable_files(tmp_path):
    assert [f.split(":")[0] for f in validate(tmp_path)] == ["sessions.jsonl"]
    folder(tmp_path, [], QUESTIONS)
    assert validate(tmp_path)[0] == "sessions.jsonl: there is no line in it"
    (tmp_path / "sessions.jsonl").write_bytes(b"\xff\xfe")
    assert "not UTF-8" in validate(tmp_path)[0]
    with pytest.raises(MemlabError, match=r"sessions\.jsonl and questions\.jsonl"):
        Custom()
    with pytest.raises(MemlabError, match="is no folder"):
        Custom(path=str(tmp_path / "no"))


STOP = "…and reading stopped after 1,000 faults"


def test_reading_stops_after_a_thousand_faults(tmp_path):
    """A file of another kind has a fault on each line; so many help nobody, and their texts take memory."""
    folder(tmp_path, ["{", *["1"] * 999], QUESTIONS)
    (tmp_path / "questions.jsonl").unlink()
    assert len(validate(tmp_path)) == 1000  # all of them, and no more were there
    folder(tmp_path, ["1"] * 1001, QUESTIONS)
    faults = validate(tmp_path)
    assert faults[-1] == STOP
    assert len(faults) == 1001
    assert faults[999].startswith("sessions.jsonl, line 1000: ")
    with pytest.raises(Faults, match="reading stopped after 1,000 faults") as stop:
        Custom(path=tmp_path).load()
    assert stop.value.faults == faults


def at(session: str, said_on: str | None) -> dict:
    return {"corpus": "me", "session": session, "said_on": said_on, "turns": [{"role": "user", "text": session}]}


def asked(*moments: str | None) -> list[dict]:
    return [{"question": f"q{i}", "corpus": "me", "text": "Which?", "asked_on": moment}
            for i, moment in enumerate(moments)]


def visible(tables: Tables) -> list[set[str]]:
    """The names of the sessions that each question may see."""
    sessions = tables["sessions"].join(tables["ids"].filter(kind="session"), on=["corpus", "session"])
    return [set(sessions.filter(as_of(asked=pl.lit(moment)))["name"]) for moment in tables["questions"]["asked_on"]]


TOKYO, LA = at("tokyo", "2025-05-21T01:30:00+09:00"), at("la", "2025-05-20T23:30:00-07:00")
"""16:30 UTC on the 20th, and 06:30 UTC on the 21st."""


@pytest.mark.parametrize(("sessions", "moments", "place"), [
    ([TOKYO, at("naive", "2025-05-21T01:30")], [],
     "sessions.jsonl, line 2, field said_on: 2025-05-21T01:30:00 has no UTC offset, but 2025-05-21T01:30:00+09:00 "),
    ([at("naive", "2025-05-21T00:00"), TOKYO], [],
     "sessions.jsonl, line 2, field said_on: 2025-05-21T01:30:00+09:00 has a UTC offset, but 2025-05-21T00:00:00 "
     "(sessions.jsonl, line 1, field said_on) has none"),
    ([TOKYO], ["2025-05-22", "2025-05-22T08:00"], "questions.jsonl, line 2, field asked_on: 2025-05-22T08:00:00 has "),
    ([at("naive", "2025-05-21T01:30")], ["2025-05-22T08:00Z"], "questions.jsonl, line 1, field asked_on"),
    ([at("day", "2025-05-21")], ["2025-05-22T08:00Z", "2025-05-22T08:00"], "questions.jsonl, line 2, field asked_on"),
])
def test_mixed_times_are_refused(tmp_path, sessions, moments, place):
    path = folder(tmp_path, sessions, asked(*moments or [None]))
    (fault,) = validate(path)
    assert fault.startswith(place)
    assert "write an offset everywhere or nowhere" in fault
    with pytest.raises(Faults):
        Custom(path=path).load()


@pytest.mark.parametrize("value", [
    1747785600, True, "1747785600.5", "2025-05-20+02:00", "2025-05-20-07:00", "2025-05-20Z", "2025-05-20x10:00",
    "2016-12-31T23:59:60Z", "0001-01-01T00:00:00+09:00", "9999-12-31T23:59:59-14:00", "2025-05-20T10:00+25:00", ""])
def test_what_is_no_date_is_named(tmp_path, value):
    (fault,) = validate(folder(tmp_path, [at("a", value)], asked(None)))
    assert "line 1, field said_on: expected a date: write" in fault


def test_evidence_of_a_later_day_in_the_zone_is_a_fault(tmp_path):
    question = {**asked("2025-05-20T23:59:00Z")[0], "evidence": [{"session": "la"}]}
    path = folder(tmp_path, [LA, TOKYO], [question])
    assert "'la' is of 2025-05-21, after the question" in validate(path)[0]
    assert validate(path, "Asia/Tokyo") == []
    assert Custom(path=path, timezone="Asia/Tokyo").load()["evidence"].height == 1


@pytest.mark.parametrize(("name", "meant"), [("Europe/Roma", "Europe/Rome"), ("rome", "Europe/Rome"), ("utc", "UTC"),
                                             ("Asia", ""), ("", ""), ("../UTC", ""), ("localtime", "")])
def test_an_unknown_zone_is_told(tmp_path, name, meant):
    with pytest.raises(MemlabError, match=f"data.timezone: there is no time zone '{name}'.*{meant}"):
        Custom(path=folder(tmp_path, [TOKYO], asked(None)), timezone=name)


START = datetime(2024, 10, 25, tzinfo=UTC)  # two days before summer time ends in Europe
MOMENTS = st.integers(0, 4 * 24 * 60).map(lambda minutes: START + timedelta(minutes=minutes))
OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(said=st.lists(MOMENTS, min_size=1, max_size=5), when=st.lists(MOMENTS, min_size=1, max_size=3), data=st.data(),
       zone=st.sampled_from(["UTC", "Europe/Rome", "Asia/Kolkata", "America/Los_Angeles", "Pacific/Kiritimati"]))
def test_visibility_is_of_moments_whatever_their_offsets(said, when, data, zone):
    def written(moment: datetime) -> str:
        return moment.astimezone(data.draw(OFFSETS)).isoformat()

    def load() -> Tables:
        with tempfile.TemporaryDirectory() as place:
            path = folder(Path(place), [at(str(i), written(moment)) for i, moment in enumerate(said)],
                          asked(*map(written, when)))
            return Custom(path=path, timezone=zone).load()

    tables, again = load(), load()
    days = [moment.astimezone(ZoneInfo(zone)).date() for moment in said]
    assert visible(tables) == [{str(i) for i, day in enumerate(days) if day <= moment.astimezone(ZoneInfo(zone)).date()}
                               for moment in when]
    names = [int(name) for name in tables["ids"].filter(kind="session")["name"]]
    assert [said[i] for i in names] == sorted(said)
    for name in tables:
        assert_frame_equal(tables[name], again[name])
