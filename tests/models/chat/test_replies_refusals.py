"""Servers that refuse fields of a request, each with the error that its documentation or its users show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from memlab.models.chat.openai import OpenAIChat
from memlab.models.protocols import Message, Prompt
from memlab.support.errors import MemlabError
from tests.models.service import Service, chat_reply, echo, install, refusal

SCHEMA = '{"type": "object", "properties": {"label": {"type": "string"}}, "required": ["label"]}'
Error = tuple[int, Any] | None
Api = Callable[[dict[str, Any]], Error]


def error(message: str, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def openai_reasoning(body: dict[str, Any]) -> Error:
    """GPT-5 and the o models, at OpenAI and at Azure."""
    if "max_tokens" in body:
        return 400, error("Unsupported parameter: 'max_tokens' is not supported with this model. Use "
                          "'max_completion_tokens' instead.", "max_tokens", "unsupported_parameter")
    if body.get("temperature", 1) != 1:
        return 400, error("Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) "
                          "value is supported.", "temperature", "unsupported_value")
    if "logprobs" in body:
        return 403, error("You are not allowed to request logprobs from this model")
    return None


def mistral(body: dict[str, Any]) -> Error:
    if "seed" in body:
        return 422, {"object": "error", "message": {"detail": [{
            "type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted", "input": 0}]},
            "type": "invalid_request_error", "param": None, "code": None}
    return None


def gemini(body: dict[str, Any]) -> Error:
    unknown = [f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.'
               for name in ("seed", "logprobs") if name in body]
    return (400, [{"error": {"code": 400, "message": "\n".join(unknown), "status": "INVALID_ARGUMENT"}}]
            ) if unknown else None


def deepseek(body: dict[str, Any]) -> Error:
    if body.get("response_format", {}).get("type") == "json_schema":
        return 400, error("This response_format type is unavailable now")
    return (400, error("deepseek-reasoner does not support the parameter `logprobs`")) if "logprobs" in body else None


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    return install(monkeypatch, echo)


def behind(api: Api, answer: Callable[[dict[str, Any]], Any] = echo) -> Callable[[dict[str, Any]], Any]:
    """Answer as a server that first looks at the fields of a request."""
    def answer_or_refuse(body: dict[str, Any]) -> Any:
        error = api(body)
        return httpx.Response(error[0], json=error[1]) if error else answer(body)

    return answer_or_refuse


def chat(**fields: Any) -> OpenAIChat:
    return OpenAIChat(**{"model": "tiny", "window": 4096, "logprobs": True, "retries": 0, **fields})


def prompts(count: int, **fields: Any) -> list[Prompt]:
    return [Prompt((Message("user", f"question {i}"),), **fields) for i in range(count)]


@pytest.mark.parametrize(("api", "named", "settings", "kept", "gone"), [
    (openai_reasoning, "max_completion_tokens", {"temperature": None, "logprobs": False, "omit": ["max_tokens"]},
     {"seed", "max_completion_tokens"}, {"max_tokens", "temperature", "logprobs"}),
    (mistral, "Extra inputs", {"omit": ["seed"]}, {"temperature", "max_tokens", "logprobs"}, {"seed"}),
    (gemini, "Unknown name", {"omit": ["seed"], "logprobs": False}, {"temperature", "max_tokens"},
     {"seed", "logprobs"}),
    (deepseek, "logprobs", {"logprobs": False}, {"max_tokens", "seed", "temperature"}, {"logprobs"})])
def test_a_refused_field_is_named_with_the_setting_that_leaves_it_out(
        api: Api, named: str, settings: dict[str, Any], kept: set[str], gone: set[str], service: Service) -> None:
    service.answer = behind(api)
    with pytest.raises(MemlabError, match=rf"{named}.*chat\.temperature=null, .*chat\.omit=\[seed\]"):
        list(chat().complete(prompts(1)))
    model = chat(**settings)
    found = dict(model.complete(prompts(3, max_tokens=33)))
    assert {reply.text for reply in found.values()} == {f"You said: question {i}" for i in range(3)}
    sent = service.bodies[-1]
    assert kept <= set(sent)
    assert not gone & set(sent)
    assert sent.get("max_completion_tokens", sent.get("max_tokens")) == 33
    assert model.identity() != chat().identity()


def test_no_temperature_is_sent_if_none_is_set(service: Service) -> None:
    service.answer = behind(openai_reasoning)
    model = chat(temperature=None, logprobs=False, omit=["max_tokens"])
    list(model.complete([*prompts(1, temperature=0.0), *prompts(1, temperature=0.7, sample=1)]))
    assert not any("temperature" in body for body in service.bodies)
    assert model.identity() != chat(logprobs=False).identity()


def test_a_schema_is_asked_for_in_words_where_the_server_binds_to_none(service: Service) -> None:
    service.answer = behind(deepseek, lambda body: chat_reply(
        '{"label": "yes"}' if SCHEMA in body["messages"][-1]["content"] else "yes"))
    found = dict(chat(logprobs=False, concurrency=2).complete(prompts(8, schema=SCHEMA)))
    assert {reply.text for reply in found.values()} == {'{"label": "yes"}'}
    assert not any(reply.repaired for reply in found.values())
    assert len(service.requests) <= 8 + 2  # the client knows it then


@pytest.mark.parametrize(("answer", "finish"), [
    (refusal(400, "The prompt was filtered", code="content_filter"), "content_filter"),
    (refusal(400, "This model's maximum context length is 280 tokens."), "refused"),
    (refusal(413, "too large"), "refused")])
def test_a_prompt_that_the_server_cannot_answer_stops_no_other(
        answer: httpx.Response, finish: str, service: Service) -> None:
    service.answer = lambda body: answer if body["messages"][-1]["content"].endswith("1") else echo(body)
    found = dict(chat(repairs=0).complete(prompts(3)))
    assert [found[place].finish for place in sorted(found)] == ["stop", finish, "stop"]
    assert found[1].fault is not None
    assert dict(chat().complete(prompts(2, schema=SCHEMA)))[1].finish == finish
