from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from memlab.config.instantiate import CONF, construct
from memlab.errors import MemlabError
from memlab.store import Store
from memlab.write.chunk.length import FirstSeparator, Recursive
from tests.write.conversations import talk, written

LONG = " ".join(f"This is sentence {i}." for i in range(80))
CHAT = talk([("user", "Hi"), ("assistant", LONG), ("user", "Thanks"), ("user", "Bye")])
MARKS = ("\n\n", "\n", ". ", " ")


def made(stage):
    return CHAT.updated(stage.run(CHAT, Store()))


def split(text: str, size: int, overlap: int):
    return FirstSeparator(size=size, overlap=overlap, separators=MARKS).cut(text)


def of_conf(name: str):
    faults: list[str] = []
    node = OmegaConf.load(CONF / "write" / "chunk" / f"{name}.yaml")
    stage = construct(OmegaConf.to_container(node), "chunk", faults)
    assert faults == []
    return stage


def test_the_published_splitter_leaves_a_long_paragraph_whole_and_the_corrected_one_does_not():
    flawed, mended = of_conf("elizaos"), of_conf("elizaos_corrected")
    assert flawed == FirstSeparator()
    assert mended == Recursive(separators=MARKS)
    out = made(flawed)
    assert written(out) == ["user: Hi", f"assistant: {LONG}", "user: Thanks\n\nuser: Bye"]
    assert len(f"assistant: {LONG}") > 1000
    assert out["memories"]["turns"].to_list() == [[0], [1], [2, 3]]
    assert set(out["memories"]["kind"]) == {"elizaos"}
    pieces = written(made(mended))
    assert max(map(len, pieces)) <= 1000
    assert len(pieces) > 3


def test_only_the_first_separator_has_a_say():
    assert made(FirstSeparator(separators=["\n\n"]))["memories"].equals(made(FirstSeparator())["memories"])
    text = "one. two. three"
    assert split(text, 4, 0) == [(0, len(text))]  # it has no blank line, and still it is returned
    assert split(" \n\n ", 4, 0) == []


def test_short_paragraphs_are_joined_and_repeated_as_far_as_the_overlap_allows():
    text = "aaa\n\nbbb\n\nccc\n\nddd"
    assert split(text, 10, 0) == [(0, 10), (10, 18)]
    assert split(text, 10, 5) == [(0, 10), (5, 15), (10, 18)]


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(MemlabError, match="not smaller"):
        FirstSeparator(size=10, overlap=10)
    with pytest.raises(ValueError, match="at least 1"):
        FirstSeparator(separators=[""])


@given(st.text(alphabet="ab. \n", max_size=80), st.integers(1, 20), st.data())
def test_spans_cover_the_text_and_only_single_paragraphs_exceed_the_size(text, size, data):
    overlap = data.draw(st.integers(0, size - 1))
    spans = split(text, size, overlap)
    assert {i for a, b in spans for i in range(a, b)} == (set(range(len(text))) if text.strip() else set())
    assert all(b - a <= size or "\n\n" not in text[a:b].removesuffix("\n\n") for a, b in spans)
    assert all(d > b and b - c <= overlap for (_, b), (c, d) in zip(spans, spans[1:]))
