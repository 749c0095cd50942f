from __future__ import annotations

from itertools import pairwise

import pytest
from chunking.semantic import blocks
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.nightly

NOTE = """notes.md: # Backups
Every night. Kept for a week!

## How
```bash
# not a header. Not a sentence.

restic backup
```
See "above." Done
"""


def cut(text: str) -> list[tuple[str, str]]:
    return [(b.kind, text[b.start:b.stop].strip()) for b in blocks(text)]


def test_headers_code_and_sentences_are_told_apart():
    assert cut(NOTE) == [
        ("header", "notes.md: # Backups"), ("sentence", "Every night."), ("sentence", "Kept for a week!"),
        ("header", "## How"), ("code", "```bash\n# not a header. Not a sentence.\n\nrestic backup\n```"),
        ("sentence", 'See "above."'), ("sentence", "Done")]


def test_code_that_nothing_closes_runs_to_the_end_and_other_fences_close_nothing():
    assert cut("user: ~~~\na. b\n```\nc. d") == [("code", "user: ~~~\na. b\n```\nc. d")]
    assert cut("````\na\n```\nb\n````\nEnd.")[0] == ("code", "````\na\n```\nb\n````")
    assert [kind for kind, _ in cut("#hashtag one\n#")] == ["sentence"]


@given(st.lists(st.sampled_from(["# Head\n", "```\n", "~~~~\n", "One. ", "two! three", "\n", "\n\n", " ", "a: # b\n",
                                 "\u2028"])))
def test_blocks_tile_any_text_and_none_is_blank(parts):
    text = "".join(parts)
    found = blocks(text)
    assert "".join(text[b.start:b.stop] for b in found) == text
    assert all(a.stop == b.start for a, b in pairwise(found))
    if text.strip():
        assert all(text[b.start:b.stop].strip() for b in found)
