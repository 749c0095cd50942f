"""The rule of dates and times."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest

from memlab.support.clock import Clock, order, read_moment, time_zone
from memlab.support.errors import MemlabError

ROME = ZoneInfo("Europe/Rome")


@pytest.mark.parametrize(("value", "moment"), [
    ("2025-05-20", date(2025, 5, 20)), ("20250520", date(2025, 5, 20)), ("2025-W21-2", date(2025, 5, 20)),
    (date(2025, 5, 20), date(2025, 5, 20)), ("2025-05-20T00:00", datetime(2025, 5, 20)),
    ("2025-05-20 18:30", datetime(2025, 5, 20, 18, 30)),
    ("2025-05-20T18:30Z", datetime(2025, 5, 20, 18, 30, tzinfo=UTC)),
    ("2025-05-20T18:30+05:30", datetime(2025, 5, 20, 13, tzinfo=UTC)),
    ("2025-05-20T18:30-0730", datetime(2025, 5, 21, 2, tzinfo=UTC)),
    (datetime(2024, 10, 27, 2, 30, tzinfo=ROME), datetime(2024, 10, 27, 0, 30, tzinfo=UTC)),
    (datetime(2024, 10, 27, 2, 30, tzinfo=ROME, fold=1), datetime(2024, 10, 27, 1, 30, tzinfo=UTC)),
])
def test_dates_and_times_are_told_apart(value: object, moment: date | datetime) -> None:
    read = read_moment(value)
    assert (type(read), read) == (type(moment), moment)


@pytest.mark.parametrize("value", [
    "", "soon", "2025-05-20+02:00", "2025-05-20Z", "2025-05", "2025-05-20T18:30 CET", 20250520, None, True])
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(MemlabError, match="now: .*(is no date|expected a date).*write 2023-05-20"):
        read_moment(value, "now")


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Etc/GMT+12"])
@pytest.mark.parametrize("moment", ["0002-01-01T00:00+14:00", "9998-12-31T23:59-12:00"])
def test_the_first_and_last_moments_have_a_day_everywhere(zone: str, moment: str) -> None:
    there = Clock(time_zone(zone, "")).local(moment, "")
    assert there.replace(tzinfo=ZoneInfo(zone)) == datetime.fromisoformat(moment)
    with pytest.raises(MemlabError, match="no day in some time zones"):
        Clock().local(moment.replace("0002", "0001").replace("9998", "9999"), "")


@pytest.mark.parametrize("name", ["/etc/localtime", "Localtime", "factory", "US/posixrules", "europe/rome", "Rom"])
def test_a_time_zone_that_is_suggested_is_known(name: str) -> None:
    with pytest.raises(MemlabError) as told:
        time_zone(name, "")
    if suggested := told.value.fix.removeprefix("did you mean ").removesuffix("?"):
        assert time_zone(suggested.removeprefix("give a name such as "), "") is not None


def test_the_present_is_of_the_kind_of_the_times(monkeypatch: pytest.MonkeyPatch) -> None:
    def near(clock: Clock, zone: tzinfo | None) -> bool:
        return abs(datetime.now(UTC).astimezone(zone).replace(tzinfo=None) - clock.now()) < timedelta(minutes=1)

    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    time.tzset()
    try:
        moments, walls = Clock(), Clock()
        moments.local("2025-05-20T10:00Z", "")
        walls.local("2025-05-20T10:00", "")
        assert near(moments, UTC)
        assert near(walls, timezone(timedelta(hours=14)))  # of this machine
        assert near(Clock(ROME), ROME)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_the_order_is_of_days_then_of_moments() -> None:
    clock = Clock(ROME)
    values = [None, date(2024, 10, 27), *map(read_moment, ("2024-10-27T00:50Z", "2024-10-27T03:10+02:00",
                                                           "2024-10-27T23:30Z")), date(2024, 10, 29)]
    assert sorted(reversed(values), key=lambda value: order(value, clock)) == values
