"""The HTTP client against a service that fails in every way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from memlab.errors import MemlabError
from memlab.models.http.backoff import asked_wait
from memlab.models.http.client import Service
from tests.models.loopback import Loopback, serving

BODY = {"input": ["a"]}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    monkeypatch.setattr("memlab.models.http.client.FIRST_WAIT", 0.01)
    with serving() as loopback:
        yield loopback


def service(world: Loopback, **options: Any) -> Service:
    defaults = {"key_env": None, "retries": 3, "timeout": 5.0, "requests_per_minute": None}
    return Service(world.url + "/embeddings", **{**defaults, **options})


@pytest.mark.parametrize("fault", ["429", "500", "502", "503", "529", "cut off", "not json"])
def test_passing_faults_are_retried(world: Loopback, fault: str) -> None:
    world.faults = [fault, fault]
    with service(world) as client:
        assert client.post(BODY)["data"][0]["index"] == 0
    assert len(world.bodies) == 3


def test_a_timeout_is_retried(world: Loopback) -> None:
    world.faults = ["slow"]
    with service(world, timeout=1.0) as client:
        client.post(BODY)
    assert len(world.bodies) == 2


def test_retry_after_is_honoured(world: Loopback) -> None:
    world.faults = ["429"]
    with service(world) as client:
        client.post(BODY)
    assert world.times[1] - world.times[0] >= 0.2  # the service asked for 0.2 s, the back-off alone is 0.01 s


def test_retry_after_reads_seconds_and_dates() -> None:
    assert asked_wait("3", 1.0) == 3.0
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert 50 < asked_wait(later, 1.0) <= 60
    assert asked_wait("soon", 1.0) == 1.0
    assert asked_wait(None, 1.0) == 1.0


@pytest.mark.parametrize(("fault", "told"), [("500", "status 500"), ("cut off", "RemoteProtocolError"),
                                             ("not json", "the reply is not JSON")])
def test_retries_are_bounded(world: Loopback, fault: str, told: str) -> None:
    world.faults = [fault] * 9
    with service(world, retries=2) as client, pytest.raises(MemlabError, match=f"no answer after 3 attempts, .*{told}"):
        client.post(BODY)
    assert len(world.bodies) == 3


def test_nobody_listens() -> None:
    with (Service("http://127.0.0.1:9/v1/embeddings", None, retries=0, timeout=2.0, requests_per_minute=None) as client,
          pytest.raises(MemlabError, match=r"http://127\.0\.0\.1:9/v1/embeddings: no answer after 1 attempts")):
        client.post(BODY)


@pytest.mark.parametrize("status", ["401", "403"])
def test_a_refused_key_is_told_at_once_without_telling_it(world: Loopback, monkeypatch: pytest.MonkeyPatch,
                                                          status: str) -> None:
    monkeypatch.setenv("LAB_KEY", "very-secret")
    world.faults = [status] * 5
    with service(world, key_env="LAB_KEY") as client, pytest.raises(MemlabError) as caught:
        client.post(BODY)
    assert "check the key in LAB_KEY" in str(caught.value)
    assert "very-secret" not in str(caught.value)
    assert world.headers[0]["Authorization"] == "Bearer very-secret"
    assert len(world.bodies) == 1


@pytest.mark.parametrize(("status", "fix"), [("400", "batch, max_characters"), ("404", "check url and model"),
                                             ("418", "the service's own log")])
def test_other_refusals_are_not_retried(world: Loopback, status: str, fix: str) -> None:
    world.faults = [status] * 5
    with service(world) as client, pytest.raises(MemlabError, match=fix):
        client.post(BODY)
    assert len(world.bodies) == 1


def test_a_missing_key_is_told_before_anything_is_sent(world: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAB_KEY", raising=False)
    with pytest.raises(MemlabError, match="export LAB_KEY=YOUR_KEY"):
        service(world, key_env="LAB_KEY")
    assert world.bodies == []


def test_a_password_in_the_address_is_not_shown() -> None:
    client = Service("http://me:hush@127.0.0.1:9/v1", None, retries=0, timeout=1.0, requests_per_minute=None)
    with client:
        assert client.where == "http://127.0.0.1:9/v1"


def test_the_rate_limit_spaces_requests(world: Loopback) -> None:
    with service(world, requests_per_minute=600.0) as client:  # one every 0.1 s
        start = time.monotonic()
        for _ in range(4):
            client.post(BODY)
        assert time.monotonic() - start >= 0.29
