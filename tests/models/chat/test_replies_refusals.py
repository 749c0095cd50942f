"""Servers that refuse fields of a request, each with the error that its documentation or its users show."""

from __future__ import annotations

from typing import Any

import pytest

from memlab.errors import MemlabError
from memlab.models.chat.openai import OpenAIChat
from memlab.models.chat.replies import refused_schemas
from memlab.models.protocols import Message, Prompt
from tests.models.chatserver import ChatServer, serving

SCHEMA = '{"type": "object", "properties": {"label": {"type": "string"}}, "required": ["label"]}'
Error = tuple[int, Any] | None


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


def anthropic(body: dict[str, Any]) -> Error:
    return (400, error("temperature: `temperature` is deprecated for this model.")) if "temperature" in body else None


def kimi(body: dict[str, Any]) -> Error:
    return (400, error("invalid temperature: only 1 is allowed for this model")) if body.get("temperature", 1) != 1 \
        else None


def deepseek(body: dict[str, Any]) -> Error:
    if body.get("response_format", {}).get("type") == "json_schema":
        return 400, error("This response_format type is unavailable now")
    return (400, error("deepseek-reasoner does not support the parameter `logprobs`")) if "logprobs" in body else None


@pytest.fixture(autouse=True)
def nothing_known() -> None:
    """A server may get the port of an earlier one, whose refusals the process knows."""
    refused_schemas.cache_clear()


def chat(server: ChatServer, **fields: Any) -> OpenAIChat:
    return OpenAIChat(**{"model": "tiny", "url": server.url, "window": 4096, "logprobs": True, "retries": 0, **fields})


def prompts(count: int, **fields: Any) -> list[Prompt]:
    return [Prompt((Message("user", f"question {i}"),), **fields) for i in range(count)]


@pytest.mark.parametrize(("api", "named", "settings", "kept", "gone"), [
    (openai_reasoning, "max_completion_tokens", {"temperature": None, "logprobs": False, "omit": ["max_tokens"]},
     {"seed", "max_completion_tokens"}, {"max_tokens", "temperature", "logprobs"}),
    (mistral, "Extra inputs", {"omit": ["seed"]}, {"temperature", "max_tokens", "logprobs"}, {"seed"}),
    (gemini, "Unknown name", {"omit": ["seed"], "logprobs": False}, {"temperature", "max_tokens"},
     {"seed", "logprobs"}),
    (anthropic, "deprecated", {"temperature": None}, {"max_tokens", "seed", "logprobs"}, {"temperature"}),
    (kimi, "only 1 is allowed", {"temperature": None}, {"max_tokens", "seed", "logprobs"}, {"temperature"}),
    (deepseek, "logprobs", {"logprobs": False}, {"max_tokens", "seed", "temperature"}, {"logprobs"})])
def test_a_refused_field_is_named_with_the_setting_that_leaves_it_out(
        api: Any, named: str, settings: dict[str, Any], kept: set[str], gone: set[str]) -> None:
    with serving() as server:
        server.refuses = api
        with pytest.raises(MemlabError, match=rf"{named}.*chat\.temperature=null, .*chat\.omit=\[seed\]"):
            list(chat(server).complete(prompts(1)))
        model = chat(server, **settings)
        found = dict(model.complete(prompts(3, max_tokens=33)))
        assert {reply.text for reply in found.values()} == {f"You said: question {i}" for i in range(3)}
        sent = server.requests[-1]
        assert kept <= set(sent)
        assert not gone & set(sent)
        assert sent.get("max_completion_tokens", sent.get("max_tokens")) == 33
        assert model.identity() != chat(server).identity()


def test_no_temperature_is_sent_if_none_is_set() -> None:
    with serving() as server:
        server.refuses = openai_reasoning
        model = chat(server, temperature=None, logprobs=False, omit=["max_tokens"])
        list(model.complete([*prompts(1, temperature=0.0), *prompts(1, temperature=0.7, sample=1)]))
        assert not any("temperature" in request for request in server.requests)
        assert model.identity() != chat(server, logprobs=False).identity()


def test_a_schema_is_asked_for_in_words_where_the_server_binds_to_none() -> None:
    with serving(rule=lambda m: '{"label": "yes"}' if SCHEMA in m[-1]["content"] else "yes") as server:
        server.refuses = deepseek
        found = dict(chat(server, logprobs=False, concurrency=8).complete(prompts(8, schema=SCHEMA)))
        assert {reply.text for reply in found.values()} == {'{"label": "yes"}'}
        assert len(server.requests) <= 16
        list(chat(server, logprobs=False).complete(prompts(3, schema=SCHEMA)))  # the process knows it
        assert not any("response_format" in request for request in server.requests[-3:])


def test_a_value_out_of_range_is_an_error_of_the_user() -> None:
    for message, param in (("max_tokens is too large: 900. This model supports at most 512 completion tokens.",
                            "max_tokens"), ("temperature must be between 0 and 2", "temperature")):
        with serving() as server:
            server.refuses = lambda _, m=message, p=param: (400, error(m, p, "invalid_value"))  # type: ignore[misc]
            with pytest.raises(MemlabError, match=message[:20]):
                list(chat(server, logprobs=False).complete(prompts(1)))
            assert len(server.requests) == 1


def test_a_prompt_that_the_filter_refuses_has_no_answer_and_stops_no_other() -> None:
    def api(body: dict[str, Any]) -> Error:
        refused = body["messages"][-1]["content"].endswith("1")
        return (400, error("The prompt was filtered", "prompt", "content_filter")) if refused else None

    with serving() as server:
        server.refuses = api
        found = dict(chat(server).complete(prompts(3)))
    replies = [found[place] for place in sorted(found)]
    assert [reply.finish for reply in replies] == ["stop", "content_filter", "stop"]
    assert replies[1].fault is not None
