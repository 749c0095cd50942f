from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.pipeline.token_counter import count_tokens
from memlab.stages.write.chunk import Recursive, Tokens, Window, split, windows
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.stages.write.conversations import talk, written

WORDS = " ".join(f"w{i}." for i in range(60))
CHAT = talk([("user", "Hi"), ("assistant", WORDS), ("user", " "), ("user", "Bye")], [("user", "x" * 90)])


def made(stage):
    return CHAT.updated(stage.run(CHAT, Store()))


def transcript() -> str:
    return f"user: Hi\n\nassistant: {WORDS}\n\nuser: Bye"


def test_windows_cut_the_transcript_and_name_the_turns_they_touch():
    out = made(Window(size=100, overlap=20))
    first = out["memories"].filter(session=0)
    text = transcript()
    expected = [text[a:a + 100].strip() for a in range(0, len(text) - 20, 80)]
    assert written(out)[:len(expected)] == expected
    assert first["turns"].to_list()[0] == [0, 1]
    assert first["turns"].to_list()[1] == [1]
    assert first["turns"].to_list()[-1] == [1, 3]
    assert written(out) == written(out, "value")
    exact = made(Window(size=len("user: Hi"), overlap=0))
    assert exact["memories"]["turns"].to_list()[:2] == [[0], [1]]  # cut where a turn ends: touches it no more


def test_recursive_pieces_prefer_coarse_separators_and_never_exceed_the_size():
    out = made(Recursive(size=50, overlap=10))
    pieces = written(out)
    assert pieces[0] == "user: Hi"  # the turn after it is long: split by itself
    assert max(map(len, pieces)) <= 50
    assert pieces[-1] == "x" * 50  # 90 characters without a separator: 0-50, 40-90
    assert all(p.endswith(".") for p in pieces[1:4])


def test_token_windows_hold_as_many_tokens_as_asked():
    out = made(Tokens(size=20, overlap=5))
    counts = count_tokens(pl.Series(written(out))).to_list()
    assert counts[0] == 20
    assert max(counts) == 20
    assert written(out)[0].startswith("user: Hi\n\nassistant: w0. w1.")


def test_an_overlap_as_long_as_the_piece_is_refused():
    for stage in (Window, Recursive, Tokens):
        with pytest.raises(MemlabError, match="not smaller"):
            stage(size=10, overlap=10)


@given(st.integers(0, 60), st.integers(1, 20), st.data())
def test_windows_cover_all_and_none_lies_in_the_one_before(count, size, data):
    overlap = data.draw(st.integers(0, size - 1))
    spans = windows(count, size, overlap)
    assert {i for a, b in spans for i in range(a, b)} == set(range(count))
    assert all(b - a <= size for a, b in spans)
    assert all(b < d for (_, b), (_, d) in zip(spans, spans[1:]))


@given(st.text(alphabet="ab. \n", max_size=80), st.integers(1, 20), st.data())
def test_recursive_spans_cover_the_text_within_size_and_overlap(text, size, data):
    overlap = data.draw(st.integers(0, size - 1))
    spans = split(text, 0, len(text), size, overlap, ("\n\n", "\n", ". ", " "))
    assert {i for a, b in spans for i in range(a, b)} == set(range(len(text)))
    assert all(b - a <= size for a, b in spans)
    assert all(b - c <= overlap and d > b for (_, b), (c, d) in zip(spans, spans[1:]))
