"""Levels and lengths of JSON in pieces of any size, against what the parsed value has."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import MemlabError
from memlab.runtime import foreign
from memlab.runtime.foreign import CountedStream, JsonCounter, ValueBudget, check_json, load_json

LETTERS = st.text(st.sampled_from('a"\\[]{}/é\u2028\n'), max_size=6)
VALUES = st.recursive(LETTERS | st.integers() | st.none(), lambda inner: st.lists(inner, max_size=3)
                      | st.dictionaries(LETTERS, inner, max_size=3), max_leaves=12)


def levels(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(levels, inner), default=0)


def feed(counter: JsonCounter, pieces: list[bytes]) -> None:
    for piece in pieces:
        counter.feed(piece)


@given(VALUES, st.integers(1, 7), st.booleans())
def test_the_levels_are_those_of_the_value_whatever_the_pieces(value: Any, size: int, ascii_only: bool) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only).encode()
    deepest = levels(value)
    pieces = [raw[at:at + size] for at in range(0, len(raw), size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(foreign, "MOST_LEVELS", deepest)
        feed(JsonCounter(), pieces)
        patch.setattr(foreign, "MOST_LEVELS", deepest - 1)
        if deepest:
            with pytest.raises(MemlabError, match=r"^a\.json: .*levels deep"):
                feed(JsonCounter("a.json"), pieces)


def test_a_hundred_levels_are_read_and_no_more() -> None:
    assert levels(load_json("[" * 100 + "]" * 100)) == 100
    assert load_json(json.dumps("[" * 500)) == "[" * 500
    with pytest.raises(MemlabError, match=r"b\.json, line 3: .*more than 100 levels deep"):
        load_json('{"a":' * 101 + "1" + "}" * 101, "b.json, line 3")
    with pytest.raises(ValueError, match="Expecting"):
        load_json("[")


def test_a_long_text_is_refused_before_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "MOST_BYTES", 10_000)
    monkeypatch.setattr(foreign, "PIECE", 1000)
    check_json(json.dumps(["a" * 9000] * 20))
    check_json(json.dumps("[\\\"") * 9000)  # many short texts
    for text in ("a" * 13_000, '\\"[' * 6000, "é" * 13_000):
        with pytest.raises(MemlabError, match="one text has more than"):
            check_json(json.dumps(["short", text], ensure_ascii=False))


def test_a_stream_never_hands_out_the_piece_that_is_too_deep() -> None:
    class Endless:
        given = 0

        def read(self, size: int) -> bytes:
            self.given += size
            return b"[" * size

    source: Any = Endless()
    with pytest.raises(MemlabError, match="levels deep"):
        CountedStream(source).read(1000)
    assert source.given == 1000


def values(value: Any) -> int:
    """Lists, objects, and commas between entries."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(len(inner) - 1, 0) + sum(map(values, inner))


@given(VALUES, st.integers(1, 7), st.booleans())
def test_a_budget_is_spent_on_lists_objects_and_commas_outside_texts(value: Any, size: int, ascii_only: bool) -> None:
    raw = json.dumps([value, ","], ensure_ascii=ascii_only).encode()
    pieces = [raw[at:at + size] for at in range(0, len(raw), size)]
    spent = values([value, ","])
    feed(JsonCounter(budget=ValueBudget(spent, "split it")), pieces)
    with pytest.raises(MemlabError, match=rf"^a\.json: it holds more than {spent - 1} values.*Fix: split it$"):
        feed(JsonCounter("a.json", ValueBudget(spent - 1, "split it")), pieces)


@given(VALUES, st.sampled_from([0, 200]))
def test_short_and_long_texts_are_counted_alike(value: Any, blanks: int) -> None:
    text = json.dumps(value, ensure_ascii=False) + " " * blanks
    check_json(text, "a", ValueBudget(values(value), "split it"))
    if values(value):
        with pytest.raises(MemlabError, match=r"^a: it holds more than"):
            check_json(text, "a", ValueBudget(values(value) - 1, "split it"))


def test_a_budget_is_shared_by_all_texts() -> None:
    budget = ValueBudget(6, "split it")
    assert load_json("[1, 2, 3]", "a", budget) == [1, 2, 3]
    check_json("[1, 2, 3]", "b", budget)
    with pytest.raises(MemlabError, match=r"^c: it holds more than 6 values"):
        check_json("[]", "c", budget)
