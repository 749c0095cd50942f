from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.stages.write.extract import Chunked, chunks, cuts
from memlab.support.errors import MemlabError


def parts(text: str, size: int, overlap: int) -> list[str]:
    return [text[a:b] for a, b in cuts(text, size, overlap)]


def test_a_sentence_end_comes_before_a_newline_and_that_before_a_space() -> None:
    assert parts("aaaaaa. bb\nc ddddd eeee", 16, 0)[0] == "aaaaaa. bb\n"  # the sentence ends within the half
    assert parts("aaaaaaaa. b\ncc dddddd eee", 16, 0)[0] == "aaaaaaaa. "
    assert parts("aaaa. aaaa bbbbbbbbbbbbb", 16, 0)[0] == "aaaa. aaaa "
    assert parts("a" * 40, 16, 0) == ["a" * 16, "a" * 16, "a" * 8]


def test_the_overlap_begins_with_a_word() -> None:
    assert parts("one two. three four. five six. seven", 22, 8) == ["one two. three four. ", "four. five six. seven"]


def test_chunks_know_their_lines() -> None:
    lines = ["[2023-05-20] I love tea.", "[2023-05-20] I hate rain.", "[2023-05-20] I am old."]
    assert chunks(lines, Chunked(size=60, overlap=0)) == [("\n".join(lines[:2]), [0, 1]), (lines[2], [2])]
    assert [at for _, at in chunks(lines, Chunked(size=60, overlap=15))] == [[0, 1], [1, 2]]


def test_an_overlap_of_more_than_half_is_refused() -> None:
    with pytest.raises(MemlabError, match="more than half"):
        Chunked(size=100, overlap=51)


@given(st.lists(st.text(st.sampled_from("ab .!\n"), min_size=1, max_size=30).map(lambda t: " ".join(t.split()) or "a"),
                min_size=1, max_size=12), st.integers(4, 40), st.data())
def test_chunks_are_short_and_leave_nothing_out(lines: list[str], size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, size // 2))
    text = "\n".join(lines)
    spans = cuts(text, size, overlap)
    assert all(0 < b - a <= size for a, b in spans)
    covered = {i for a, b in spans for i in range(a, b)}
    assert all(not text[i].strip() for i in set(range(len(text))) - covered)
    made = chunks(lines, Chunked(size=size, overlap=overlap))
    assert {i for _, at in made for i in at} == set(range(len(lines)))
