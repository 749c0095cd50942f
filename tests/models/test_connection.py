"""The connection to a server, against a service that fails in every way, by a clock that does not wait."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from memlab.models.connection import AWAY_WAIT, LONGEST_WAIT, UNREACHABLE_WAIT, Connection, retry_after_seconds
from memlab.models.server import ServerSettings
from memlab.support.errors import MemlabError
from tests.models.chatserver import publish, serving
from tests.models.service import NOBODY, Fault, Service, install, refusal, stop_clock

URL = "http://127.0.0.1:9/v1"
CUT = httpx.RemoteProtocolError("peer closed connection")
PAGE, FORM = httpx.Response(200, content=b"<html>busy</html>"), httpx.Response(200, json={"object": "list"})


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    return stop_clock(monkeypatch)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    return install(monkeypatch, lambda body: {"said": body["say"]})


def read(reply: httpx.Response) -> str:
    try:
        return str(reply.json()["said"])
    except (KeyError, ValueError):
        raise ValueError("holds nothing that is said") from None


def ask(**settings: Any) -> str:
    fields: dict[str, Any] = {"url": URL, "model": "m", "retries": 3, **settings}
    with Connection(ServerSettings(**fields)) as connection:
        return connection.post("/talk", {"say": "hello"}, read)


def record(url: str, key: str = "k", model: str = "m", **fields: Any) -> None:
    publish(url, key=key, name=model, model=model, **fields)


@pytest.mark.parametrize("fault", [
    refusal(429), refusal(500), refusal(502), refusal(503), refusal(504), refusal(529), refusal(408), CUT, PAGE, FORM,
    httpx.ReadTimeout("slow"), NOBODY])
def test_passing_faults_change_nothing(fault: Fault, service: Service, waits: list[float]) -> None:
    service.faults = [fault, fault]
    assert ask() == "hello"
    assert (len(service.requests), len(waits)) == (3, 2)


def check_waits(waits: list[float], expected: list[float], jitter: float) -> None:
    assert all(least <= wait < least + jitter for wait, least in zip(waits, expected, strict=True))


def test_waits_grow_by_the_first_one_where_they_are_linear(service: Service, waits: list[float]) -> None:
    service.faults = [refusal(500)] * 4
    ask(first_wait=2.0, waits="linear", retries=4)
    check_waits(waits, [2, 4, 6, 8], 2)


@pytest.mark.parametrize(("header", "least"), [("2", [2, 2, 4, 8]), ("3000", [LONGEST_WAIT] * 4), ("0", [1, 2, 4, 8]),
                                               ("-5", [1, 2, 4, 8]), ("nan", [1, 2, 4, 8])])
def test_a_wait_is_that_of_the_server_and_never_shorter_than_the_growing_one(
        header: str, least: list[float], service: Service, waits: list[float]) -> None:
    service.faults = [httpx.Response(429, headers={"Retry-After": header})] * 4
    ask(retries=4)
    check_waits(waits, least, 1)


def test_retry_after_reads_seconds_and_dates() -> None:
    now = datetime.now(UTC)
    assert 50 < retry_after_seconds(format_datetime(now + timedelta(seconds=60), usegmt=True)) <= 60
    past = format_datetime(now - timedelta(seconds=60), usegmt=True)
    for header in ("soon", "", past, past.removesuffix(" GMT"), "Mon, 01 Jan 99999999999999999999 00:00:00 GMT"):
        assert retry_after_seconds(header) == 0.0


@pytest.mark.parametrize(("fault", "message"), [
    (refusal(500, "a\x1b[31m\nmess"), "last: status 500: a.*mess"), (CUT, "last: RemoteProtocolError"),
    (FORM, "last: the reply holds nothing"), (httpx.ReadTimeout("slow"), "last: no reply in 60 s")])
def test_retries_are_bounded(fault: Fault, message: str, service: Service, waits: list[float]) -> None:
    service.always = fault
    with pytest.raises(MemlabError, match=f"^{URL}: no answer after 3 attempts, {message}.*Fix: look into the server's "
                                          "log.*what was answered is stored") as raised:
        ask(retries=2)
    assert len(service.requests) == 3
    assert str(raised.value).isprintable()


def test_a_server_that_has_answered_is_waited_for_as_long_as_patience_allows(
        service: Service, waits: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    ask()
    service.faults = [NOBODY, refusal(503), NOBODY, NOBODY, NOBODY]
    assert ask(retries=0) == "hello"
    assert waits == [1, 2, 4, AWAY_WAIT, AWAY_WAIT]
    shown = capsys.readouterr().err
    assert shown.count("it is waited for, at most 1 min 00 s. Fix: start the server (`memlab serve m`)") == 1
    assert shown.count("answers again") == 1
    waits.clear()
    service.always = NOBODY
    with pytest.raises(MemlabError, match="the server has been away for 20 s .ConnectError.*answered is stored"):
        ask(patience=20.0)
    assert 20 <= sum(waits) <= 20 + AWAY_WAIT


def test_an_address_where_nothing_has_ever_listened_ends_the_run_soon(service: Service, waits: list[float]) -> None:
    service.always = NOBODY
    record("http://127.0.0.1:7/v1", model="another")
    record("http://127.0.0.1:8/v1", model="dead", pid=2**22)
    with pytest.raises(MemlabError) as raised:
        ask()
    assert UNREACHABLE_WAIT <= sum(waits) <= UNREACHABLE_WAIT + AWAY_WAIT
    assert "no server is there (ConnectError" in str(raised.value)
    assert str(raised.value).endswith("start the server (`memlab serve m`) or set chat.url; running (`memlab serve "
                                      "list`): another at http://127.0.0.1:7/v1; then give the same line again: what "
                                      "was answered is stored")
    record("http://127.0.0.1:8/v1")
    with pytest.raises(MemlabError, match="chat.url=http://127.0.0.1:8/v1, where `memlab serve` says"):
        ask(patience=0.0)


def test_a_server_that_is_being_started_here_is_waited_for(service: Service, waits: list[float]) -> None:
    record(URL.replace("127.0.0.1", "localhost") + "/")
    service.faults = [NOBODY] * 8
    assert ask() == "hello"
    assert sum(waits) > UNREACHABLE_WAIT


@pytest.mark.parametrize(("fault", "message"), [
    (refusal(401), "the key is refused .status 401: no.*Fix: name the variable that holds the key: chat.key_env=NAME"),
    (refusal(403), "the key is refused .status 403"), (refusal(404), "chat.model=NAME; known: other.*, tiny"),
    (refusal(400, "a\x1b[31mtop_k\nmust be positive"), r"a\\x1b\[31mtop_k must be positive.*chat.temperature=null"),
    (httpx.Response(418, content=b"page " * 4_000_000), "the request is refused .status 418: page"),
    (httpx.Response(308, headers={"Location": "https://elsewhere.example/v1"}),
     r"redirects to https://elsewhere\.example/v1 \(status 308\).*Fix: chat\.url=ADDRESS"),
    (httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED]"), "no secure connection .*SSL_CERT_FILE=FILE"),
    (httpx.ConnectError("[SSL: WRONG_VERSION_NUMBER]"), "no secure connection .*http:// for a server without TLS")])
def test_what_repeating_does_not_mend_ends_the_run_at_once(
        fault: Fault, message: str, service: Service, waits: list[float]) -> None:
    service.always = fault
    with pytest.raises(MemlabError, match=message) as raised:
        ask()
    assert (len(service.requests), waits) == (1, [])
    assert len(str(raised.value)) < 1000


def test_a_key_is_sent_and_never_shown(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, message in (("", "is empty"), ("schlüssel", "holds char"), ("a\nb", "holds char")):
        monkeypatch.setenv("LAB_KEY", key)
        with pytest.raises(MemlabError, match=f"LAB_KEY {message}.*export LAB_KEY=YOUR_KEY"):
            ask(key_env="LAB_KEY")
    assert service.requests == []
    monkeypatch.setenv("LAB_KEY", "very-secret")
    service.always = refusal(401, "no access with very-secret")
    with pytest.raises(MemlabError, match=r"no access with \*\*\*.*export LAB_KEY=YOUR_KEY with a key that this") as it:
        ask(key_env="LAB_KEY")
    assert "very-secret" not in str(it.value) + repr(it.value.__cause__)
    assert service.requests[0].headers["authorization"] == "Bearer very-secret"


def test_a_server_started_here_has_its_key_and_may_come_back_with_another(
        service: Service, waits: list[float], memlab_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not for this server")
    ask()
    record(URL, "first")
    (memlab_home / "serving" / "torn.json").write_text("{")

    def restart(body: dict[str, Any]) -> Any:
        record(URL, "anew")
        return refusal(401) if service.requests[-1].headers["authorization"] != "Bearer anew" else {"said": "yes"}

    service.answer = restart
    assert ask() == "yes"
    assert [request.headers.get("authorization") for request in service.requests] == [
        None, "Bearer first", "Bearer anew"]
    record(URL, "stale")
    service.answer = lambda body: refusal(401)
    with pytest.raises(MemlabError, match="the record of the server is stale: start it again"):
        ask()


def test_the_query_of_an_address_is_sent_and_neither_it_nor_a_password_is_shown(service: Service) -> None:
    url = "http://me:hush@127.0.0.1:9/v1/?api-version=1"
    ask(url=url)
    assert service.requests[0].url.raw_path == b"/v1/talk?api-version=1"
    assert Connection(ServerSettings(url=url, model="m")).where == "http://127.0.0.1:9/v1/"


@pytest.mark.parametrize("url", ["http://", "http:///v1", "http://[::1/v1", "http://h:99999/v1", "http://h:x/v1",
                                 "http://a b/v1", "http://h\n/v1", "http://h:0/v1", "ftp://h", "http://[::g]/v1",
                                 "http://" + "\u00e9" * 70 + ".de", "localhost:8000/v1", "automatic"])
def test_a_malformed_address_is_refused_with_the_settings(url: str) -> None:
    with pytest.raises(ValidationError, match="not the address of a server"):
        ServerSettings(url=url, model="m")


def test_answers_come_before_an_error_and_no_more_is_asked() -> None:
    asked: list[int] = []

    def answer(job: int) -> int:
        asked.append(job)
        if job == 5:
            raise MemlabError("five")
        return job * job

    answers = Connection(ServerSettings(url=URL, model="m")).ask_all(range(100), answer, 2)
    found = []
    with pytest.raises(MemlabError, match="five"):
        found.extend(answers)
    assert {(job, job * job) for job in range(4)} <= {*found}
    assert len(asked) < 20


def test_a_slow_reader_is_not_left_behind() -> None:
    asked: list[int] = []
    answers = Connection(ServerSettings(url=URL, model="m")).ask_all(range(100), asked.append, 4)
    for _ in range(10):
        next(answers)
    assert len(asked) <= 10 + 8
    assert sum(1 for _ in answers) == 90


def test_leaving_early_ends_the_requests_under_way() -> None:
    with serving() as server:
        server.gate = lambda number: number == 1
        connection = Connection(ServerSettings(url=server.url, model="m"))
        body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        answers = connection.ask_all(range(400), lambda job: connection.post("/chat", body, lambda reply: job), 4)
        with connection:
            next(answers)
            before = threading.active_count()
            answers.close()
        server.gate = None
        server.wait_until_left()
        assert len(server.requests) <= 5
        assert threading.active_count() == before - 4
