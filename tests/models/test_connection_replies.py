"""Embedders, rerankers and chat models against replies that no sound server sends: a value, or one MemlabError."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.models.chat.replies import parse_completion
from memlab.models.http import HttpEmbedder, read_scores
from memlab.models.protocols import MAX_TOKENS, Completion
from memlab.store import completions
from memlab.support.errors import MemlabError
from tests.fuzz.mutation import as_json, fuzz, mutated, outcome

KINDS = ("embedder", "reranker", "chat")
COUNTED = '{"choices": [{"message": {"content": "a"}}], "usage": {"prompt_tokens": COUNT}}'
BODIES = {"nothing": b"", "no UTF-8": b"\xff\xfe{}", "open lists": b"[" * 200_000, "5,000 digits": b"9" * 5000,
          "null": b"null", "list": b"[]", "lists of null": b'{"data": [null], "results": [null], "choices": [null]}',
          "null for lists": b'{"data": null, "results": null, "choices": null}',
          "an object for lists": b'{"data": {"0": 1}, "results": {"0": 1}, "choices": {"0": 1}}',
          "no index": b'{"data": [{"embedding": [1]}], "results": [{"relevance_score": 1}]}',
          "lists in lists": b'{"data": [{"index": 0, "embedding": [[1, 1]]}]}',
          **{f"{count} tokens": COUNTED.replace("COUNT", count).encode() for count in ("1e999", "1" * 30, "-1", '"a"')}}
COUNT, WIDTH = 3, 2
NUMBER = st.floats(-1e6, 1e6, width=32)


def read(kind: str, content: bytes) -> Any:
    """Return what is read from a reply, None if it cannot be read, or the error for a user."""
    reply = httpx.Response(200, content=content)
    reply.elapsed = timedelta(seconds=.1)
    try:
        if kind == "embedder":
            model = HttpEmbedder(url="http://h", model="m", dimensions=WIDTH)
            return outcome(lambda: model.read_vectors(reply, COUNT))
        return outcome(lambda: read_scores(reply, COUNT) if kind == "reranker" else parse_completion(reply))
    except ValueError:  # the request is sent again
        return None


@pytest.mark.parametrize("kind", KINDS)
def test_an_odd_reply_cannot_be_read(kind: str) -> None:
    assert {name for name, body in BODIES.items() if read(kind, body) is not None} == set()


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


@pytest.mark.parametrize("kind", KINDS)
@fuzz
@given(st.data())
def test_sound_replies_are_read_and_broken_ones_are_a_value_or_none(kind: str, data: st.DataObject) -> None:
    sound = data.draw(replies_of(kind))
    value = read(kind, json.dumps(sound).encode())
    assert value is not None
    assert not isinstance(value, MemlabError)
    for found in (value, read(kind, data.draw(as_json(mutated(sound))))):
        if isinstance(found, Completion):
            assert 0 <= found.prompt_tokens <= MAX_TOKENS >= found.completion_tokens >= 0
            assert found.logprob is None or math.isfinite(found.logprob)
            assert completions.decode(completions.encode("k", found)) == ("k", found)
        elif isinstance(found, np.ndarray):
            assert (found.dtype, found.shape) == (np.float32, (COUNT, WIDTH) if kind == "embedder" else (COUNT,))
            norms = np.linalg.norm(found, axis=1) if kind == "embedder" else found
            assert (np.isnan(norms) | (norms == 0) | (np.abs(norms - 1) < 1e-5)).all() or kind == "reranker"
            assert not np.isinf(found).any()
