"""Servers that refuse fields of a request, each with the error that its documentation or its users show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memlab.errors import MemlabError
from memlab.models.chat.openai import OpenAIChat
from memlab.models.chat.replies import fields_of, refused_fields
from memlab.models.protocols import Message, Prompt
from memlab.store import Store
from memlab.store.completions import decode, encode
from memlab.tables import Notes
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
    fields_of.cache_clear()


def chat(server: ChatServer, **fields: Any) -> OpenAIChat:
    return OpenAIChat(**{"model": "tiny", "url": server.url, "window": 4096, "logprobs": True, "retries": 0, **fields})


def prompts(count: int, **fields: Any) -> list[Prompt]:
    return [Prompt((Message("user", f"question {i}"),), **fields) for i in range(count)]


@pytest.mark.parametrize(("api", "refusals", "kept", "gone"), [
    (openai_reasoning, 3, {"seed", "max_completion_tokens"}, {"max_tokens", "temperature", "logprobs"}),
    (mistral, 1, {"temperature", "max_tokens", "logprobs"}, {"seed"}),
    (gemini, 1, {"temperature", "max_tokens"}, {"seed", "logprobs"}),
    (anthropic, 1, {"max_tokens", "seed", "logprobs"}, {"temperature"}),
    (kimi, 1, {"max_tokens", "seed", "logprobs"}, {"temperature"}),
    (deepseek, 1, {"max_tokens", "seed", "temperature"}, {"logprobs"})])
def test_what_a_server_refuses_is_not_sent_again(api: Any, refusals: int, kept: set[str], gone: set[str]) -> None:
    with serving() as server:
        server.refuses = api
        asked = prompts(12, max_tokens=33)
        found = dict(chat(server, concurrency=12).complete(asked))
        assert {reply.text for reply in found.values()} == {f"You said: question {i}" for i in range(12)}
        assert len(server.requests) == 12 + refusals  # one request alone pays, though twelve are sent at a time
        assert kept <= set(server.requests[-1])
        assert not gone & set(server.requests[-1])
        assert all(name in reply.sent for reply in found.values() for name in gone)
        list(chat(server).complete(asked))  # a later stage of the same process knows it
        assert len(server.requests) == 24 + refusals


def test_the_limit_is_renamed_and_the_run_says_what_was_sent(tmp_path: Path) -> None:
    with serving() as server:
        server.refuses = openai_reasoning
        model, notes = chat(server, logprobs=False), Notes()
        Store(tmp_path).completions(model, prompts(3, max_tokens=16), notes)
        assert server.requests[-1]["max_completion_tokens"] == 16
        told = {what: number for what, number, _ in notes.table().rows()}
        assert told == {"tiny: max_completion_tokens: 16 (the server refuses max_tokens)": 3,
                        "tiny: temperature: not sent (refused by the server)": 3}
        again, before = Notes(), len(server.requests)
        Store(tmp_path).completions(model, prompts(3, max_tokens=16), again)  # from the store, and it still says so
        assert len(server.requests) == before
        assert again.table().rows() == notes.table().rows()


def test_what_was_sent_is_stored_with_a_reply_and_old_lines_stay_as_they_are() -> None:
    with serving() as server:
        ((_, plain),) = chat(server).complete(prompts(1))
        assert plain.sent == ""
        assert b"sent" not in encode("k", plain)
        server.refuses = kimi
        ((_, reply),) = chat(server, temperature=0.5).complete(prompts(1))
        assert decode(encode("k", reply)) == ("k", reply)
        assert reply.sent == "temperature: not sent (refused by the server)"


def test_no_temperature_is_sent_if_none_is_set() -> None:
    with serving() as server:
        server.refuses = openai_reasoning
        model = chat(server, temperature=None, logprobs=False)
        found = list(model.complete([*prompts(1, temperature=0.0), *prompts(1, temperature=0.7, sample=1)]))
        assert not any("temperature" in request for request in server.requests)
        assert all("temperature" not in reply.sent for _, reply in found)
        assert model.identity() != chat(server, logprobs=False).identity()


def test_a_schema_is_asked_for_in_words_where_the_server_binds_to_none() -> None:
    with serving(rule=lambda m: '{"label": "yes"}' if SCHEMA in m[-1]["content"] else "yes") as server:
        server.refuses = deepseek
        found = dict(chat(server, logprobs=False, concurrency=8).complete(prompts(8, schema=SCHEMA)))
        assert {reply.text for reply in found.values()} == {'{"label": "yes"}'}
        assert len(server.requests) == 9


def test_a_value_out_of_range_is_an_error_of_the_user() -> None:
    for message, param in (("max_tokens is too large: 900. This model supports at most 512 completion tokens.",
                            "max_tokens"), ("temperature must be between 0 and 2", "temperature")):
        with serving() as server:
            server.refuses = lambda _, m=message, p=param: (400, error(m, p, "invalid_value"))  # type: ignore[misc]
            with pytest.raises(MemlabError, match=message[:20]):
                list(chat(server, logprobs=False).complete(prompts(1)))
            assert len(server.requests) == 1


def test_a_field_that_means_something_is_not_dropped() -> None:
    with serving() as server:
        server.refuses = lambda body: (400, error("Unsupported value: 'reasoning_effort' does not support 'xhigh'.",
                                                  "reasoning_effort", "unsupported_value")
                                       ) if "reasoning_effort" in body else None
        with pytest.raises(MemlabError, match="reasoning_effort"):
            list(chat(server, reasoning_effort="xhigh").complete(prompts(1)))
        server.refuses = lambda body: (400, error("Unsupported parameter", name, "unsupported_parameter")) if (
            name := next((n for n in ("max_tokens", "max_completion_tokens") if n in body), None)) else None
        with pytest.raises(MemlabError, match="refused"):  # no limit at all is another request
            list(chat(server).complete(prompts(1)))


def test_one_model_of_a_server_says_nothing_of_another() -> None:
    with serving() as server:
        server.refuses = lambda body: openai_reasoning(body) if body["model"] == "gpt-5" else None
        list(chat(server, model="gpt-5").complete(prompts(1)))
        list(chat(server, model="gpt-4o").complete(prompts(1)))
        assert {"max_tokens", "temperature", "logprobs"} <= set(server.requests[-1])


def test_fields_that_a_message_names() -> None:
    assert refused_fields(None, None, "temperature and seed are not supported") == ("temperature", "seed")
    assert refused_fields("messages[0].role", "unsupported_value", "'messages[0].role' does not support 'x'") == ()
    assert refused_fields(None, None, "the model is overloaded") == ()


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
