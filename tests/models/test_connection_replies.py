"""Embedders, rerankers and chat models against replies that no sound server sends: a value, or one MemlabError."""

from __future__ import annotations

import asyncio
import json
import math
import socket
import time
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memlab.errors import MemlabError
from memlab.models import connection
from memlab.models.chat.openai import OpenAIChat
from memlab.models.chat.replies import parse_completion
from memlab.models.connection import Connection, Reply
from memlab.models.http import HttpEmbedder, HttpReranker, read_scores
from memlab.models.protocols import MAX_TOKENS, Completion, Message, Prompt
from memlab.models.server import ServerSettings
from memlab.store import completions
from tests.fuzz.mutation import as_json, fuzz, mutated, outcome
from tests.models.rawserver import always, raw_server, reply

KINDS = ("embedder", "reranker", "chat")
FORMS = {"embedder": b'{"data": [{"index": 0, "embedding": [%s, 1.5]}]}',
         "reranker": b'{"results": [{"index": 0, "relevance_score": %s}]}',
         "chat": b'{"choices": [{"message": {"content": "yes"}, "logprobs": {"content": [{"logprob": %s}]}}]}'}
NUMBERS = {"1e999": b"1e999", "-1e999": b"-1e999", "400 digits": b"9" * 400, "5,000 digits": b"9" * 5000,
           "5,000 decimals": b"0." + b"9" * 5000, "1e300": b"1e300", "no UTF-8": b'"\xff\xfe"', "text": b'"1.5"',
           "half a character": b'"\\ud800"', "open lists": b"[" * 200_000, "list": b"[1.5]", "object": b"{}",
           "true": b"true", "null": b"null", "NaN": b"NaN", "Infinity": b"-Infinity", "nothing": b"", "comma": b","}
BODIES = {"nothing": b"", "no UTF-8": b"\xff\xfe{}", "UTF-16": "{}".encode("utf-16"), "open lists": b"[" * 200_000,
          "open objects": b'{"a":' * 200_000, "number": b"7", "5,000 digits": b"9" * 5000, "text": b'"data"',
          "null": b"null", "list": b"[]", "object": b"{}", "zero": b"\0", "two values": b"{} {}",
          "lists of null": b'{"data": [null], "results": [null], "choices": [null]}',
          "null for lists": b'{"data": null, "results": null, "choices": null}',
          "an object for lists": b'{"data": {"0": 1}, "results": {"0": 1}, "choices": {"0": 1}}'}
PLACES = {"embedder": b'{"data": [{"index": %s, "embedding": [1, 1.5]}]}',
          "reranker": b'{"results": [{"index": %s, "relevance_score": 1}]}',
          "chat": b'{"choices": [{"message": {"content": "yes"}}], "usage": {"prompt_tokens": %s}}'}


def ask(kind: str, url: str, text: str = "a", **options: Any) -> Any:
    """Ask a model of a kind once; return a vector, a score or a completion."""
    options = {"url": url, "model": "m", "retries": 0, "timeout": 5.0, **options}
    if kind == "embedder":
        ((_, vectors),) = HttpEmbedder(dimensions=2, **options).encode([text], "query")
        return vectors[0]
    if kind == "reranker":
        ((_, scores),) = HttpReranker(**options).score([text], [text], np.array([[0, 0]]))
        return scores[0]
    ((_, completion),) = OpenAIChat(patience=0.0, **options).complete([Prompt((Message("user", text),))])
    return completion


def check(kind: str, value: Any) -> None:
    """A value is one that a sound server may give, or NaN, which the store refuses by its text."""
    if kind == "chat":
        assert isinstance(value, Completion)
    elif kind == "embedder":
        assert value.dtype == np.float32
        assert np.isnan(value).all() or np.linalg.norm(value) == pytest.approx(1.0)
    else:
        assert value.dtype == np.float32
        assert np.isnan(value) or np.isfinite(value)


@pytest.mark.parametrize("kind", KINDS)
def test_odd_replies_are_a_value_or_an_error_for_users(kind: str) -> None:
    bodies = {**BODIES, **{f"value: {name}": FORMS[kind].replace(b"%s", value) for name, value in NUMBERS.items()},
              **{f"place: {name}": PLACES[kind].replace(b"%s", value) for name, value in NUMBERS.items()}}
    assert {name: fault for name, body in bodies.items() if (fault := fault_of(kind, body))} == {}


def fault_of(kind: str, body: bytes) -> str:
    """Return what is wrong with what a model makes of a reply."""
    with raw_server(always(body)) as url, warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            check(kind, ask(kind, url))
        except MemlabError as error:
            said = str(error)
        except Exception as error:
            return repr(error)[:80]
        else:
            return ""
    return "" if len(said) < 1000 and said.isprintable() and "Fix: " in said else said[:200]


NUMBER = st.floats(-1e6, 1e6, width=32)
COUNT, WIDTH = 3, 2


def replies_of(kind: str) -> st.SearchStrategy[Any]:
    """Draw sound replies of a kind for ``COUNT`` texts, with the fields that protocols know, needed or not."""
    usage = st.fixed_dictionaries({"prompt_tokens": st.integers(0, 9), "completion_tokens": st.integers(0, 9)},
                                  optional={"total_tokens": st.integers(0, 9), "prompt_tokens_details": st.none()})
    order = st.permutations(range(COUNT))
    if kind == "embedder":
        vector = st.lists(NUMBER, min_size=WIDTH, max_size=WIDTH)
        return st.builds(lambda order, vectors, usage: {"object": "list", "model": "m", "usage": usage, "data": [
            {"object": "embedding", "index": i, "embedding": vectors[i]} for i in order]},
            order, st.lists(vector, min_size=COUNT, max_size=COUNT), usage)
    if kind == "reranker":
        return st.builds(lambda order, scores: {"results": [
            {"index": i, "relevance_score": scores[i], "document": {"text": "a"}} for i in order]},
            order, st.lists(NUMBER, min_size=COUNT, max_size=COUNT))
    text = st.text(max_size=9)
    parts = st.lists(st.fixed_dictionaries({"type": st.sampled_from(("text", "reasoning", "refusal")), "text": text}))
    tokens = st.fixed_dictionaries({"content": st.none() | st.lists(
        st.fixed_dictionaries({"token": text, "logprob": st.floats(-9, 0)}))})
    message = st.fixed_dictionaries({"role": st.just("assistant"), "content": st.none() | text | parts},
                                    optional={"refusal": st.none() | text, "reasoning_content": text})
    ends = st.sampled_from(("stop", "length", "content_filter", None))
    choice = st.fixed_dictionaries({"index": st.just(0), "message": message, "finish_reason": ends},
                                   optional={"logprobs": st.none() | tokens})
    return st.fixed_dictionaries({"choices": st.lists(choice, min_size=1, max_size=2)},
                                 optional={"usage": st.none() | usage, "id": text})


def read(kind: str, content: bytes) -> Any:
    """Return what is read from a reply, None if it cannot be read, or the error for a user."""
    try:
        if kind == "embedder":
            return outcome(lambda: HttpEmbedder(url="http://h", model="m", dimensions=WIDTH)
                           .read_vectors(content, COUNT))
        if kind == "reranker":
            return outcome(lambda: read_scores(content, COUNT))
        return outcome(lambda: parse_completion(Reply(200, content, seconds=0.1)))
    except ValueError:  # the request is sent again
        return None


@pytest.mark.parametrize("kind", KINDS)
@fuzz
@given(st.data())
def test_sound_replies_are_read_and_broken_ones_are_a_value_or_none(kind: str, data: st.DataObject) -> None:
    sound = data.draw(replies_of(kind))
    value = read(kind, json.dumps(sound).encode())
    assert value is not None
    assert not isinstance(value, MemlabError)
    broken = read(kind, data.draw(as_json(mutated(sound))))
    for found in (value, broken):
        if kind == "chat" and isinstance(found, Completion):
            assert 0 <= found.prompt_tokens <= MAX_TOKENS >= found.completion_tokens >= 0
            assert found.logprob is None or math.isfinite(found.logprob)
            assert completions.decode(completions.encode("k", found)) == ("k", found)
        elif isinstance(found, np.ndarray):
            assert (found.dtype, found.shape) == (np.float32, (COUNT, WIDTH) if kind == "embedder" else (COUNT,))
            norms = np.linalg.norm(found, axis=1) if kind == "embedder" else found
            assert (np.isnan(norms) | (norms == 0) | (np.abs(norms - 1) < 1e-5)).all() or kind == "reranker"
            assert not np.isinf(found).any()


@pytest.mark.parametrize("kind", ["embedder", "reranker"])
@pytest.mark.parametrize("name", ["1e999", "400 digits", "NaN", "Infinity", "null"])
def test_a_number_that_is_too_large_is_none(kind: str, name: str) -> None:
    with raw_server(always(FORMS[kind].replace(b"%s", NUMBERS[name]))) as url:
        assert np.isnan(ask(kind, url)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("head", [b"HTTP/1.1 400 No\r\n", b"HTTP/1.1 500 No\r\n", b"HTTP/1.1 200 OK\r\n"])
def test_a_long_refusal_is_read_in_part(kind: str, head: bytes) -> None:
    page = b"only " * 4_000_000
    body = page if b"200" not in head else PLACES[kind].replace(b"%s", b'"' + page + b'"')
    with raw_server(lambda connection: connection.sendall(reply(body, head=head))) as url:
        start = time.process_time()
        with pytest.raises(MemlabError) as raised:
            ask(kind, url)
        assert time.process_time() - start < 3.0
    assert len(str(raised.value)) < 1000


def trickle(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    for _ in range(200):
        connection.sendall(b" ")
        time.sleep(0.1)


def trickle_head(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    for i in range(200):
        connection.sendall(b"X-%d: a\r\n" % i)
        time.sleep(0.1)


def continues_slowly(connection: socket.socket) -> None:
    for _ in range(200):
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        time.sleep(0.1)


def continues(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)


def refuse_slowly(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 500 No\r\nContent-Length: 1000\r\n\r\n")
    trickle(connection)


@pytest.mark.parametrize("behave", [trickle, trickle_head, continues_slowly, continues, refuse_slowly])
@pytest.mark.parametrize("kind", KINDS)
def test_a_request_has_a_total_time(kind: str, behave: Any) -> None:
    with raw_server(behave) as url:
        start = time.monotonic()
        with pytest.raises(MemlabError):
            ask(kind, url, timeout=0.5)
        assert time.monotonic() - start < 5.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("head", [b"HTTP/9.9 200 OK\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n",
                                  b"HTTP/1.1 200 \xff\r\n", b"\0\0\0", b"HTTP/1.1 99999 OK\r\n", b"HTTP/1.1 600 OK\r\n",
                                  b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", b"HTTP/1.1 204 No\r\n",
                                  b"HTTP/1.1 200 OK\r\nA: " + b"a" * 300_000 + b"\r\n",
                                  b"HTTP/1.1 307 Go\r\nLocation: http://[\r\n",
                                  b"HTTP/1.1 302 Go\r\nLocation: mailto:x\r\n",
                                  b"HTTP/1.1 302 Go\r\nLocation: javascript:1\r\n", b"HTTP/1.1 101 Switch\r\n",
                                  b"HTTP/1.1 429 No\r\nRetry-After: Mon, 01 Jan 99999999999999999999 00:00:00 GMT\r\n",
                                  b"HTTP/1.1 429 No\r\nRetry-After: 1e999\r\n"])
def test_odd_heads_of_replies_are_an_error_for_users(kind: str, head: bytes) -> None:
    def behave(connection: socket.socket) -> None:
        connection.sendall(reply(b"{}", head=head))
        connection.close()

    with raw_server(behave) as url, pytest.raises(MemlabError):
        ask(kind, url, timeout=2.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("url", [
    "http://", "http:///v1", "http://[::1/v1", "http://h:99999/v1", "http://h:x/v1", "http://a b/v1",
    "http://h\n/v1", "http://h/v1\0", "http://\ud800/v1", "https://:80", "http://[::g]/v1", "http://me:hush@[/v1",
    "http://h:0/v1", "http://[h]/v1", "http://xn--\u00e9.\u00e9/v1", "http://" + "\u00e9" * 70 + ".de"])
def test_a_malformed_address_is_refused_with_the_settings(kind: str, url: str) -> None:
    with pytest.raises(ValidationError, match="address"):
        ask(kind, url)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", ["schl\u00fcssel", "two\nlines"])
def test_a_key_that_no_header_can_hold_is_named_by_its_variable(kind: str, key: str,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KEY", key)
    with pytest.raises(MemlabError, match="LAB_KEY") as raised:
        ask(kind, "http://127.0.0.1:9/v1", key_env="LAB_KEY")
    assert key not in str(raised.value)


@pytest.mark.parametrize("kind", KINDS)
def test_half_characters_of_a_text_are_replaced(kind: str) -> None:
    body = (PLACES if kind == "chat" else FORMS)[kind].replace(b"%s", b"1")
    with raw_server(always(body)) as url:
        check(kind, ask(kind, url, text="a\ud800"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("packed", [False, True])
def test_a_reply_is_read_up_to_the_limit(kind: str, packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MOST_BYTES", 1_000_000)
    sent = []

    def behave(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + b"Content-Encoding: gzip\r\n" * packed + b"\r\n")
        for _ in range(500):
            connection.sendall(b" " * 100_000)
            sent.append(100_000)

    with raw_server(behave) as url, pytest.raises(MemlabError, match="is packed" if packed else "more than 1 MB"):
        ask(kind, url)
    assert sum(sent) < 20_000_000


@pytest.mark.parametrize(("kind", "body"), [
    ("embedder", b'{"data":[' + b"0," * 1_000_000 + b"0]}"),
    ("embedder", b'{"data":[{"index":0,"embedding":[' + b'"a",' * 1_000_000 + b"1]}]}"),
    ("embedder", b'{"data":[' + b'{"index":0,"embedding":[]},' * 200_000 + b'{"index":0,"embedding":[]}]}'),
    ("reranker", b'{"results":[' + b"0," * 1_000_000 + b"0]}")], ids=["items", "numbers", "more items", "scores"])
def test_a_long_wrong_reply_costs_little(kind: str, body: bytes) -> None:
    tracemalloc.start()
    try:
        with raw_server(always(body)) as url, pytest.raises(MemlabError, match="does not hold"):
            ask(kind, url)
        assert tracemalloc.get_traced_memory()[1] < 20 * len(body)
    finally:
        tracemalloc.stop()


def test_names_of_models_from_a_server_are_short_and_plain() -> None:
    names = json.dumps({"data": [{"id": "m\x1b[31m\nX" + "n" * 200_000}] * 2000}).encode()

    def behave(connection: socket.socket) -> None:
        connection.sendall(reply(names) if next(requests) else reply(b"{}", head=b"HTTP/1.1 404 Not Found\r\n"))

    requests = iter([False, *[True] * 9])
    with raw_server(behave) as url, pytest.raises(MemlabError) as error:
        ask("embedder", url)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 2000


def test_a_model_is_found_behind_a_thousand_others_and_by_its_exact_name() -> None:
    body = json.dumps({"data": [{"id": f"other-{n}"} for n in range(1500)] + [{"id": "m\t1"}]}).encode()

    async def serves(url: str, model: str) -> bool:
        async with Connection(ServerSettings(url=url, model=model)) as client:
            return await client.serves()

    with raw_server(always(body)) as url:
        assert asyncio.run(serves(url, "m\t1"))
        assert not asyncio.run(serves(url, "m1"))
