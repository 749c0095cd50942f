"""``chat.url=auto`` against several servers: every prompt answered once, whichever of them come and go."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from memlab.errors import MemlabError
from memlab.models import connection
from memlab.models.chat import router
from memlab.models.chat.openai import OpenAIChat
from memlab.models.chat.router import describe_records
from memlab.models.protocols import Message, Prompt
from memlab.servers import running_servers
from memlab.store import Store, completions
from tests.models.chatserver import ChatServer, publish, serving


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router, "LOOK", 0.05)


@pytest.fixture
def pair() -> Iterator[tuple[ChatServer, ChatServer]]:
    """Two servers of one model, their records left."""
    with ExitStack() as stack:
        one, two = (stack.enter_context(serving(delay=0.01)) for _ in range(2))
        publish(one.url)
        publish(two.url)
        yield one, two


def chat(**fields: Any) -> OpenAIChat:
    return OpenAIChat(**{"model": "tiny", "url": "auto", "patience": 10.0, "concurrency": 4, "first_wait": .01,
                         **fields})


def prompts(count: int) -> list[Prompt]:
    """Ten at a time have 300 characters in common."""
    return [Prompt((Message("system", "Be brief."), Message("user", f"{i // 10} " * 150 + f"question {i}")))
            for i in range(count)]


def check(found: list[tuple[int, Any]], count: int) -> None:
    """Every prompt has its own answer, once."""
    assert sorted(at for at, _ in found) == list(range(count))
    assert all(reply.text.endswith(f"question {at}") for at, reply in found)


def asked(*servers: ChatServer) -> list[str]:
    return [request["messages"][-1]["content"] for server in servers for request in server.requests]


def test_each_server_takes_the_next_prompt_when_it_has_a_free_place(pair: tuple[ChatServer, ChatServer]) -> None:
    quick, stuck = pair
    quick.gate = lambda _: bool(stuck.requests)  # both take part
    stuck.gate = lambda _: len(asked(*pair)) >= 100
    check(list(chat().complete(prompts(100))), 100)
    assert (len(quick.requests), len(stuck.requests)) == (96, 4)
    assert len(set(asked(*pair))) == 100
    assert all(server.most <= 4 for server in pair)


def test_one_that_is_lost_in_mid_run_costs_nothing_that_was_answered(
        pair: tuple[ChatServer, ChatServer], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair[0].die_after = 15
    pair[1].gate = lambda number: len(pair[0].requests) >= min(number, 15)
    store, count = Store(tmp_path), 200
    replies = store.completions(chat(), prompts(count))
    check(list(enumerate(replies)), count)
    assert len(asked(*pair)) <= count + 4  # what was under way at the lost one
    kept = [completions.decode(line) for file in tmp_path.rglob("*.jsonl") for _, line in completions.lines(file)]
    assert len(kept) == len({row[0] for row in kept if row}) == count
    said = capsys.readouterr().err
    assert said.count("a server is lost") == 1
    assert pair[0].url.removesuffix("/v1") in said


def test_one_that_says_nothing_any_more_is_lost_too(pair: tuple[ChatServer, ChatServer],
                                                    monkeypatch: pytest.MonkeyPatch,
                                                    capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(connection, "PROBE_TIMEOUT", 0.5)
    monkeypatch.setattr(router, "SILENT", 2)
    pair[0].gate = lambda _: bool(pair[1].requests)
    found = []
    for reply in chat(timeout=60).complete(prompts(100)):
        found.append(reply)
        pair[1].mute = True
    check(found, 100)
    assert "no sign of life" in capsys.readouterr().err


def test_one_that_comes_up_later_takes_part(pair: tuple[ChatServer, ChatServer],
                                            capsys: pytest.CaptureFixture[str]) -> None:
    for record in running_servers():
        if record.url == pair[1].url:
            record.remove()
    # after 60 replies the first one waits for the other to take part, and to keep up
    pair[0].gate = lambda number: len(pair[1].requests) >= min(number - 60, 100)
    found = []
    for reply in chat().complete(prompts(300)):
        found.append(reply)
        if len(found) == 20:
            assert pair[1].requests == []
            publish(pair[1].url)
    check(found, 300)
    assert len(pair[1].requests) >= 100
    assert f"{pair[1].url} takes part, 2 in all" in capsys.readouterr().err


def publish_when_waited_for(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a server's record as soon as the router has found that none is up."""
    def describe(model: str) -> str:
        text = describe_records(model)
        publish(server.url)
        return text

    monkeypatch.setattr(router, "describe_records", describe)


def test_all_are_lost_and_one_comes_back_at_another_address(
        pair: tuple[ChatServer, ChatServer], monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as third:
        publish_when_waited_for(third, monkeypatch)
        found = []
        for reply in chat().complete(prompts(100)):
            found.append(reply)
            if len(found) == 20:
                assert third.requests == []
                for server in pair:
                    server.stop()
        check(found, 100)
        assert len(third.requests) >= 50
    assert "one is waited for" in capsys.readouterr().err


def test_the_first_one_is_waited_for_and_how_to_start_it_is_said(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as server:
        publish_when_waited_for(server, monkeypatch)
        check(list(chat().complete(prompts(5))), 5)
    said = capsys.readouterr().err
    assert said.count("no server of tiny is up (none has been started); one is waited for, at most 10 s. Fix: "
                      "`memlab serve tiny` on this machine, `sbatch slurm/serve.sbatch tiny`") == 1


def test_where_nobody_comes_the_message_names_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    publish("http://127.0.0.1:9/v1", job="12", host="n7", shared=True)
    publish("http://127.0.0.1:8/v1", task="")
    begun = time.monotonic()
    with pytest.raises(MemlabError) as raised:
        list(chat(patience=0.5).complete(prompts(5)))
    assert 0.5 <= time.monotonic() - begun < 60
    for part in ("chat.url=auto: no server of tiny is up", "http://127.0.0.1:9/v1 on n7, SLURM job 12, does not answer",
                 "is starting", "`sbatch slurm/serve.sbatch tiny` on a cluster", "what was answered is stored"):
        assert part in str(raised.value)


def test_another_server_at_a_recorded_address_is_passed_over() -> None:
    with serving() as stranger, serving() as server:
        publish(stranger.url, model="another")
        with pytest.raises(MemlabError, match="no server of another is up"):
            list(chat(model="another", patience=0.2).complete(prompts(5)))
        publish(server.url)
        check(list(chat().complete(prompts(5))), 5)
        assert stranger.requests == []


def test_what_fails_at_one_is_asked_of_another(pair: tuple[ChatServer, ChatServer]) -> None:
    pair[0].faults = ["500"] * 999
    pair[0].gate = lambda _: bool(pair[1].requests)  # both take part
    # the first tries all but 4, twice each; then it has nothing left to do, and must not take back what failed there
    pair[1].gate = lambda _: len(pair[0].requests) >= 16
    check(list(chat(retries=1).complete(prompts(12))), 12)
    assert (len(pair[0].requests), len(pair[1].requests)) == (16, 12)


def test_a_prompt_that_fails_everywhere_ends_the_run(pair: tuple[ChatServer, ChatServer]) -> None:
    for server in pair:
        server.faults = ["500"] * 999
    with pytest.raises(MemlabError, match="a prompt has no answer after 3 attempts, last: .*status 500"):
        list(chat(retries=2).complete(prompts(1)))


def test_a_wrong_request_ends_the_run_at_once(pair: tuple[ChatServer, ChatServer]) -> None:
    for server in pair:
        server.faults = ["400:top_k must be positive"] * 99
    with pytest.raises(MemlabError, match="top_k must be positive"):
        list(chat().complete(prompts(9)))


def test_leaving_early_ends_the_requests(pair: tuple[ChatServer, ChatServer]) -> None:
    replies = chat().complete(prompts(400))
    next(iter(replies))
    replies.close()  # type: ignore[attr-defined]
    assert not [thread for thread in threading.enumerate() if thread.name == "memlab-background"]
    for server in pair:
        server.wait_until_left()
    assert len(asked(*pair)) < 100


def test_a_limit_over_all_servers_is_shared_by_them(pair: tuple[ChatServer, ChatServer]) -> None:
    for server in pair:
        server.gate = lambda _: all(server.probes for server in pair)
    answers = chat(in_all=2).complete(prompts(40))
    found = [next(answers) for _ in range(20)]
    assert min(len(server.requests) for server in pair) > 5  # at the same time, not one behind the other
    found += answers
    assert sorted(at for at, _ in found) == list(range(40))
    assert min(len(server.requests) for server in pair) > 10
