from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from chunking.semantic import Semantic, TextBlock, blocks, similarities, valleys
from hypothesis import given
from hypothesis import strategies as st

from memlab.models.protocols import Embedder
from memlab.store import Store
from tests.stages.write.conversations import talk, written

pytestmark = pytest.mark.nightly


@dataclass(frozen=True)
class Themes:
    """An embedder with a rule: one axis a theme, by the words that it knows, and one for all else."""

    words: tuple[tuple[str, ...], ...] = (("cat",), ("train",), ("soup",))

    def identity(self) -> dict[str, Any]:
        return {"is": "themes", "words": self.words}

    def dim(self) -> int:
        return len(self.words) + 1

    def encode(self, texts: Sequence[str], role: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        counts = np.array([[sum(map(t.count, theme)) for theme in self.words] + [0.1] for t in texts], np.float32)
        yield np.arange(len(texts)), counts / np.linalg.norm(counts, axis=1, keepdims=True)

    def truncated(self, texts: Sequence[str], role: str) -> np.ndarray:
        return np.zeros(len(texts), bool)


CATS = "My cat sleeps. A cat purrs. The cat eats."
TRAINS = "The train was late. Every train is. I like the train."
SOUP = "Then I made soup. Good soup."


def chunk(*turns: tuple[str, str], **fields: Any):
    tables = talk(list(turns))
    return tables.updated(Semantic(embedder=Themes(), **fields).run(tables, Store()))


def test_pieces_begin_where_the_subject_changes_and_name_their_turns():
    assert isinstance(Themes(), Embedder)
    out = chunk(("user", f"{CATS} {TRAINS}"), ("assistant", SOUP), least=1)
    assert written(out) == [f"user: {CATS}", TRAINS, f"assistant: {SOUP}"]
    assert out["memories"]["turns"].to_list() == [[0], [0], [1]]
    assert set(out["memories"]["kind"]) == {"semantic"}
    alone = chunk(("user", f"{CATS} {TRAINS}"), ("assistant", SOUP), least=1, roles=["assistant"])
    assert written(alone) == [f"assistant: {SOUP}"]


def test_similarity_is_the_cosine_of_the_sums_on_both_sides():
    found = [TextBlock(i, i + 1, "sentence") for i in range(4)]
    v = np.array([[1, 0], [0.6, 0.8], [0.6, 0.8], [0, 1]], np.float32)
    left, right = v[0] + v[1], v[2] + v[3]
    expected = float(left @ right / np.linalg.norm(left) / np.linalg.norm(right))
    assert similarities(found, v, 2)[1] == pytest.approx(expected, abs=1e-6)
    assert similarities(found, v, 1).tolist() == pytest.approx([0.6, 1.0, 0.8], abs=1e-6)


def test_a_valley_is_judged_by_its_depth_on_both_sides():
    similar = np.array([0.9, 0.2, 0.8, 0.7, 0.75, 0.1])
    # depths by hand: 0, .7 + .6, .0, .1 + .05, 0, .65 + 0; mean .35, deviation .487
    assert valleys(similar, 0.5) == [1, 5]
    assert valleys(similar, 1.0) == [1]
    assert valleys(similar, -0.5) == [1, 3, 5]
    assert valleys(np.array([]), 0.5) == []
    assert valleys(np.array([0.5, 0.5]), 0.5) == []  # nothing dips


def test_a_header_begins_a_piece_and_stays_with_what_it_heads():
    text = "# Cats\nMy cat.\n## More\nMore cat.\n"
    out = chunk(("user", text), least=500)
    assert written(out) == ["user: # Cats\nMy cat.", "## More\nMore cat."]
    other = chunk(("user", "A cat. My cat.\n# The train\nMy soup. More soup. Hot soup."), least=1, around=1)
    assert written(other) == ["user: A cat. My cat.", "# The train\nMy soup. More soup. Hot soup."]


def turned(*degrees: float) -> tuple[str, list[TextBlock], np.ndarray]:
    """A text of ten-letter sentences whose vectors stand at these angles."""
    angles = np.radians(np.array(degrees))
    found = [TextBlock(10 * i, 10 * i + 10, "sentence") for i in range(len(degrees))]
    return "aaaaaaaa. " * len(degrees), found, np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32)


def test_the_middle_joins_the_side_to_which_it_is_nearer():
    stage = Semantic(embedder=Themes(), least=25, around=1)  # two valleys: 60 and 50 degrees, 20 letters between them
    assert stage.cut(*turned(0, 0, 0, 60, 60, 110, 110, 110)) == [(0, 30), (30, 80)]
    assert stage.cut(*turned(0, 0, 0, 50, 50, 110, 110, 110)) == [(0, 50), (50, 80)]
    tight = Semantic(embedder=Themes(), least=25, around=1, size=40)  # neither side has room for it
    assert tight.cut(*turned(0, 0, 0, 60, 60, 110, 110, 110)) == [(0, 30), (30, 50), (50, 80)]


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


@given(st.lists(st.sampled_from(["# Head\n", "```\n", "A cat. ", "A train! ", "soup\n", "\n\n", "x" * 30, " "])),
       st.integers(5, 60), st.sampled_from([-0.5, 0.5, 2.0]), st.integers(1, 3))
def test_spans_tile_any_text_within_the_size(parts, size, cutoff, around):
    text = "".join(parts)
    found = blocks(text)
    vectors = next(Themes().encode([text[b.start:b.stop] for b in found] or ["x"], "document"))[1][: len(found)]
    stage = Semantic(embedder=Themes(), size=size, least=min(10, size), cutoff=cutoff, around=around)
    spans = stage.cut(text, found, vectors)
    assert "".join(text[a:b] for a, b in spans) == text
    assert all(0 < b - a <= size for a, b in spans)
