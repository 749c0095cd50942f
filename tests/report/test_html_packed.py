from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from memlab.report.html import pack, unpack


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",))))
def test_what_is_packed_comes_back_and_is_inert_in_a_page(text: str) -> None:
    packed = pack(text)
    assert unpack(packed) == text
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", packed)
    assert pack(text) == packed


def test_text_that_repeats_becomes_small() -> None:
    assert len(pack("one session after another. " * 10_000)) < 10_000
