"""The connection to a server, through an embedder, against a service that fails in every way."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from tenacity import AsyncRetrying, Future, RetryCallState

from memlab.errors import MemlabError
from memlab.models.connection import LONGEST_WAIT, Connection, TemporaryFailure, retry_after_seconds
from memlab.models.http import HttpEmbedder
from memlab.models.server import ServerSettings
from tests.models.loopback import DIM, Loopback, serving
from tests.models.rawserver import always, raw_server, reply


@pytest.fixture
def world() -> Iterator[Loopback]:
    with serving() as loopback:
        yield loopback


def ask(world: Loopback, count: int = 1, **options: Any) -> None:
    """Send so many requests, of one text each."""
    model = HttpEmbedder(**{"url": world.url, "model": "m", "dimensions": DIM, "retries": 3, "timeout": 5.0,
                            "first_wait": .01, "batch": 1, **options})
    found = dict.fromkeys(int(at) for where, _ in model.encode([str(i) for i in range(count)], "query") for at in where)
    assert sorted(found) == list(range(count))


@pytest.mark.parametrize("fault", ["429", "500", "502", "503", "529", "cut off", "not json", "form", "few"])
def test_passing_faults_are_retried(world: Loopback, fault: str) -> None:
    world.faults = [fault, fault]
    ask(world)
    assert len(world.bodies) == 3


def test_a_timeout_is_retried(world: Loopback) -> None:
    world.faults = ["slow"]
    ask(world, timeout=1.0)
    assert len(world.bodies) == 2


@pytest.mark.parametrize(("first", "waits"), [(1.0, [1, 2, 4, 8, 16]), (2.0, [2, 4, 8, 16, 32])])
def test_waits_double_from_the_first_one_plus_a_jitter(first: float, waits: list[int]) -> None:
    connection = Connection(ServerSettings(url="http://127.0.0.1:9/v1", model="m", first_wait=first))
    state = RetryCallState(AsyncRetrying(), None, (), {})
    for attempt, wait in enumerate(waits, 1):
        state.attempt_number = attempt
        assert wait <= connection._wait(state) < wait + first


def test_waits_grow_by_the_first_one_where_they_are_linear() -> None:
    settings = ServerSettings(url="http://127.0.0.1:9/v1", model="m", first_wait=2.0, waits="linear")
    state = RetryCallState(AsyncRetrying(), None, (), {})
    for attempt, wait in enumerate((2, 4, 6, 8), 1):
        state.attempt_number = attempt
        assert wait <= Connection(settings)._wait(state) < wait + 2


def test_retry_after_is_honoured(world: Loopback) -> None:
    world.faults = ["429"]
    ask(world)
    assert world.times[1] - world.times[0] >= 0.2  # the service asked for 0.2 s, the back-off alone is 0.01 s


def test_retry_after_reads_seconds_and_dates() -> None:
    now = datetime.now(UTC)
    assert retry_after_seconds("3") == 3.0
    assert 50 < retry_after_seconds(format_datetime(now + timedelta(seconds=60), usegmt=True)) <= 60
    past = format_datetime(now - timedelta(seconds=60), usegmt=True)
    for header in ("0", "0.0", "-5", "nan", "inf", "soon", "", past, past.removesuffix(" GMT"), None):
        assert retry_after_seconds(header) == 0.0


@pytest.mark.parametrize("header", ["0", "-5", "nan", "Wed, 21 Oct 2015 07:28:00 GMT", "2", "3000"])
def test_a_wait_is_never_shorter_than_the_growing_one(header: str) -> None:
    connection = Connection(ServerSettings(url="http://127.0.0.1:9/v1", model="m", first_wait=1.0))
    state = RetryCallState(AsyncRetrying(), None, (), {})
    for attempt, growing in enumerate((1, 2, 4, 8), 1):
        state.attempt_number = attempt
        failure: Future = Future(attempt)
        failure.set_exception(TemporaryFailure("busy", header))
        state.outcome = failure
        least = {"2": max(growing, 2), "3000": LONGEST_WAIT}.get(header, growing)
        assert least <= connection._wait(state) <= max(least, growing + 1)


def test_a_redirect_names_its_target() -> None:
    head = b"HTTP/1.1 308 Go\r\nLocation: https://elsewhere.example/v1/embeddings\r\n"
    with raw_server(lambda connection: connection.sendall(reply(b"", head=head))) as url:
        model = HttpEmbedder(url=url, model="m", dimensions=DIM)
        with pytest.raises(MemlabError, match=r"redirects to https://elsewhere\.example/v1/embeddings \(status 308\).*"
                                              r"Fix: embedder\.url=ADDRESS"):
            list(model.encode(["a"], "query"))


def test_a_certificate_that_is_not_trusted_is_named_and_can_be_trusted(tmp_path: Path,
                                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    body = json.dumps({"data": [{"index": 0, "embedding": [1.0] * DIM}]}).encode()
    with raw_server(always(body), context) as url:
        url = url.replace("http://127.0.0.1", "https://localhost")
        model = HttpEmbedder(url=url, model="m", dimensions=DIM, retries=0)
        with pytest.raises(MemlabError, match=r"no secure connection .*CERTIFICATE_VERIFY_FAILED.*SSL_CERT_FILE=FILE"):
            list(model.encode(["a"], "query"))
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert len(list(model.encode(["a"], "query"))) == 1


def test_a_server_without_tls_behind_https_is_named(world: Loopback) -> None:
    with pytest.raises(MemlabError, match="no secure connection .*http:// for a server without TLS"):
        ask(world, url=world.url.replace("http:", "https:"))


@pytest.mark.parametrize(("fault", "told"), [("500", "status 500"), ("cut off", "RemoteProtocolError"),
                                             ("form", "does not hold 1 vectors"),
                                             ("not json", "the reply does not hold 1 vectors.*Invalid JSON")])
def test_retries_are_bounded(world: Loopback, fault: str, told: str) -> None:
    world.faults = [fault] * 9
    with pytest.raises(MemlabError, match=f"no answer after 3 attempts, .*{told}"):
        ask(world, retries=2)
    assert len(world.bodies) == 3


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memlab.models.connection.UNREACHABLE_WAIT", 0.1)
    model = HttpEmbedder(url="http://127.0.0.1:9/v1", model="m", dimensions=DIM)
    with pytest.raises(MemlabError, match=r"http://127\.0\.0\.1:9/v1: no server is there .ConnectError.*embedder.url"):
        list(model.encode(["a"], "query"))


def test_an_address_that_takes_no_connection_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memlab.models.connection.CONNECT_TIMEOUT", 0.2)
    monkeypatch.setattr("memlab.models.connection.PROBE_TIMEOUT", 0.2)
    monkeypatch.setattr("memlab.models.connection.UNREACHABLE_WAIT", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it never answers a handshake
        model = HttpEmbedder(url=f"https://127.0.0.1:{silent.getsockname()[1]}/v1", model="m", dimensions=DIM)
        start = time.monotonic()
        with pytest.raises(MemlabError, match="no server is there .ConnectTimeout"):
            list(model.encode(["a"], "query"))
        assert time.monotonic() - start < 10


def test_a_server_that_is_away_is_waited_for_as_long_as_patience_allows(
        world: Loopback, capsys: pytest.CaptureFixture[str]) -> None:
    ask(world)
    world.away = 3
    ask(world)
    said = capsys.readouterr().err
    assert said.count("is waited for") == said.count("answers again") == 1
    world.away = 999
    with pytest.raises(MemlabError, match="the server has been away for"):
        ask(world, patience=0.2)


@pytest.mark.parametrize("status", ["401", "403"])
def test_a_refused_key_is_told_at_once_without_telling_it(world: Loopback, monkeypatch: pytest.MonkeyPatch,
                                                          status: str) -> None:
    monkeypatch.setenv("LAB_KEY", "very-secret")
    world.faults = [status] * 5
    with pytest.raises(MemlabError) as caught:
        ask(world, key_env="LAB_KEY")
    assert "export LAB_KEY=YOUR_KEY with a key that this server takes" in str(caught.value)
    assert "very-secret" not in str(caught.value)
    assert world.headers[0]["Authorization"] == "Bearer very-secret"
    assert len(world.bodies) == 1


@pytest.mark.parametrize(("status", "fix"), [("400", "batch, max_characters"), ("404", "check embedder.url"),
                                             ("418", "check model and dimensions")])
def test_other_refusals_are_not_retried(world: Loopback, status: str, fix: str) -> None:
    world.faults = [status] * 5
    with pytest.raises(MemlabError, match=fix):
        ask(world)
    assert len(world.bodies) == 1


def test_a_missing_key_is_told_before_anything_is_sent(world: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAB_KEY", raising=False)
    with pytest.raises(MemlabError, match="export LAB_KEY=YOUR_KEY"):
        ask(world, key_env="LAB_KEY")
    assert world.bodies == []


def test_a_password_and_a_query_in_the_address_are_not_shown() -> None:
    settings = ServerSettings(url="http://me:hush@127.0.0.1:9/v1?token=hush", model="m")
    assert Connection(settings).where == "http://127.0.0.1:9/v1"


def test_the_query_of_an_address_is_sent(world: Loopback) -> None:
    ask(world, url=f"{world.url}/?api-version=1")
    assert world.paths == ["/v1/embeddings?api-version=1"]
