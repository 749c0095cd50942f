"""Times of messages: names of their fields, forms of their values, and what becomes of a time that cannot be read."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from memlab.data.chats.times import UnreadTime, read_time, said_on
from memlab.support.errors import MemlabError
from tests.chat_exports import read, write

MOMENT = datetime(2024, 3, 1, 9, 40, tzinfo=UTC)
SECONDS = int(MOMENT.timestamp())
HELLO = {"role": "user", "content": "I keep bees."}


@pytest.mark.parametrize("name", [
    "created_at", "CreatedAt", "createDate", "creation_time", "created", "createdDateTime", "inserted_at", "sentAt",
    "time", "ts", "timestamp_ms", "time_stamp", "datetime", "date_unixtime", "msg_ts", "start_time", "at", "_time",
    "last_modified"])
def test_a_time_has_many_names(name: str) -> None:
    assert said_on({**HELLO, name: SECONDS}) == MOMENT


@pytest.mark.parametrize("value", [
    SECONDS, SECONDS + .5, SECONDS * 1000 + 123, SECONDS * 10 ** 6 + 9, SECONDS * 10 ** 9, str(SECONDS),
    f"{SECONDS}.000100", str(SECONDS * 1000), "2024-03-01T09:40:00Z", "2024-03-01T09:40:00.123456789Z",
    "2024-03-01 10:40:00+01", "2024-03-01 09:40:00 UTC", "2024-03-01 04:40:00 -0500", "20240301T094000Z",
    "Fri, 01 Mar 2024 09:40:00 +0000", "Fri, 01 Mar 2024 04:40:00 EST", "1 Mar 2024 09:40:00 -0000",
    "3/1/2024 9:40:00 +00:00", "Friday, March 1, 2024 at 9:40:00\u202fAM UTC",
    {"$date": {"$numberLong": str(SECONDS * 1000)}}, {"_seconds": SECONDS, "_nanoseconds": 5}])
def test_a_moment_has_many_forms(value: object) -> None:
    moment = read_time(value)
    assert moment == MOMENT
    assert isinstance(moment, datetime)
    assert moment.tzinfo is UTC  # so that texts of moments are in their order


@pytest.mark.parametrize(("value", "local"), [
    (20240301, date(2024, 3, 1)), ("20240301", date(2024, 3, 1)), ("2024-03-01", date(2024, 3, 1)),
    (20240301094000, datetime(2024, 3, 1, 9, 40)), (202403010940, datetime(2024, 3, 1, 9, 40)),
    ("2024-03-01 09:40", datetime(2024, 3, 1, 9, 40)), ("Fri Mar  1 09:40:00 2024", datetime(2024, 3, 1, 9, 40))])
def test_dates_and_local_times_stay_so(value: object, local: date) -> None:
    assert read_time(value) == local


@pytest.mark.parametrize("value", [
    None, True, 0, 12, -SECONDS, 20241301, 133_537_128_000_000_000, 10 ** 400, float("nan"), "", "noon", "2024", "inf",
    "9" * 5000, "Fri, 01 Mar 2024 09:40:00 CET", "03/04/2024", [SECONDS], {}, {"a": {"b": {"c": {"d": SECONDS}}}}])
def test_what_may_be_another_time_is_none(value: object) -> None:
    assert read_time(value) is None


def test_the_creation_counts_before_other_times_and_a_time_of_day_before_a_date() -> None:
    assert said_on({"updated_at": SECONDS + 9, "timestamp": SECONDS + 5, "createdAt": SECONDS}) == MOMENT
    assert said_on({"updated_at": SECONDS + 9, "timestamp": SECONDS}) == MOMENT
    assert said_on({"date": "2024-03-01", "time": SECONDS}) == MOMENT
    assert said_on({"created_at": None, "timestamp": SECONDS}) == MOMENT


@pytest.mark.parametrize(("fields", "name"), [
    ({"timestamp": "noon"}, "timestamp"), ({"createdAt": 20241301}, "createdAt"), ({"time": "12:30"}, "time"),
    ({"fecha": "2024-03-01T09:40:00Z"}, "fecha"), ({"server_timestamp_value": SECONDS}, "server_timestamp_value")])
def test_what_looks_like_a_time_and_is_not_read_is_named(fields: dict[str, Any], name: str) -> None:
    found = said_on({**HELLO, **fields})
    assert isinstance(found, UnreadTime)
    assert found.field == name
    assert not found


@pytest.mark.parametrize("fields", [
    {"timestamp": None}, {"date": ""}, {"time": 0}, {"response_time": 1200}, {"timeout": 30}, {"sent": True},
    {"created_at": "0001-01-01T00:00:00Z"}, {"id": str(SECONDS)}, {"text": "2024-03-01 09:40"}, {"seed": SECONDS}])
def test_what_states_no_time_is_none(fields: dict[str, Any]) -> None:
    assert said_on({"role": "user", **fields}) is None


@pytest.mark.parametrize(("export", "place"), [
    ([{**HELLO, "timestamp": "noon"}], "conversation 'a': field timestamp looks like a time, but 'noon' is none"),
    ({"messages": [HELLO], "created_at": "March"}, "conversation 'I keep bees.': field created_at .* 'March' is none"),
    ([{**HELLO, "Zeit": "2024-03-01T09:40:00Z"}], "field Zeit looks like a time")])
def test_a_session_whose_times_cannot_be_read_is_refused(tmp_path: Path, export: Any, place: str) -> None:
    with pytest.raises(MemlabError, match=f"{place}.*timestamp"):
        read(write(tmp_path, {"a.json": export}) / "a.json")


def test_a_time_that_cannot_be_read_is_named_where_others_date_the_session(tmp_path: Path) -> None:
    rows, counts, _ = read(write(tmp_path, {"a.json": [{**HELLO, "time": "noon"}, {**HELLO, "time": SECONDS}]}))
    assert [(when, len(turns)) for _, when, turns in rows] == [("2024-03-01 09:40", 2)]
    assert counts == {"times that cannot be read left out (time 'noon')": 1}
