"""Checked lines: the bytes on the disk, and damage that is recognised."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.support.files import decode_line, encode_line


def test_the_bytes_of_a_line_stay_as_they_are() -> None:
    assert encode_line({"id": 0, "text": "é\u2028"}) == (
        b'{"check": "c623f5cbccc276e6", "id": 0, "text": "\\u00e9\\u2028"}\n')


@given(st.text(), st.data())
def test_every_change_and_every_cut_is_recognised(text: str, data: st.DataObject) -> None:
    row = {"text": text}
    line = encode_line(row)
    assert decode_line(line) == row
    at = data.draw(st.integers(0, len(line) - 1))
    assert decode_line(line[:at]) is None
    separator = range(27, 30)
    if at not in separator:
        assert decode_line(line[:at] + bytes([line[at] ^ 1]) + line[at + 1:]) is None


@pytest.mark.parametrize("content", [b"", b"\xff}", b'"a": ', b'"a": 1}}', b"1}", b'"a": ' + b"9" * 5000 + b"}"])
def test_a_line_that_is_no_row_is_none_even_with_its_digest(content: bytes) -> None:
    digest = hashlib.blake2b(content, digest_size=8).hexdigest().encode()
    assert decode_line(b'{"check": "' + digest + b'", ' + content + b"\n") is None
