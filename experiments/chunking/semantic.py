"""Chunks that begin where the subject changes: at headers, and at valleys of similarity between sentences.

After Hearst, "TextTiling: Segmenting Text into Multi-paragraph Subtopic Passages" (Computational Linguistics 23(1),
1997), with an encoder's vectors in place of word counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from memlab.models.protocols import Embedder, Floats
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import Tables, texts_frame
from memlab.stages.write.chunk import RoleChunker, Size, Span, pieces, split, transcripts
from memlab.store import Store
from memlab.support.errors import MemlabError

Kind = Literal["header", "code", "sentence"]
Count = Annotated[int, Field(ge=1)]
Similarities = NDArray[np.float64]

_SEPARATORS = ("\n\n", "\n", ". ", " ")  # for a single block that is longer than a piece may be
_APART, _TOGETHER = -2.0, 2.0  # beyond any cosine: before a header, and between a header and its text

# a turn's line begins with the speaker, so a header or a fence may follow a name and a colon
_NAME = r"(?:[^\n:`#]{1,120}: )?"
_HEADER = re.compile(_NAME + r"#{1,6}[ \t]+\S")
_FENCE = re.compile(_NAME + r" {0,3}(```+|~~~+)")
_SENTENCE = re.compile(r"(?<![.!?…])[.!?…]+[\"'”’)\]]*\s+")


class TextBlock(NamedTuple):
    """text[start:stop] with the white space after it, so that the blocks of a text cover it."""

    start: int
    stop: int
    kind: Kind


Blocks = Sequence[TextBlock]


def blocks(text: str) -> list[TextBlock]:
    r"""Cut a text into blocks.

    A header is one line. Fenced code is one block with its fences, up to the end of the text if no fence closes it. The
    rest is paragraphs between blank lines, cut after each sentence.

    >>> [(b.kind, "# T\nOne. Two.\n\n```\nx. y\n```\n"[b.start:b.stop]) for b in blocks(
    ...     "# T\nOne. Two.\n\n```\nx. y\n```\n")]
    [('header', '# T\n'), ('sentence', 'One. '), ('sentence', 'Two.\n\n'), ('code', '```\nx. y\n```\n')]
    """
    parts: list[TextBlock] = []
    block_start = line_start = 0  # block: the open paragraph or code
    fence = ""
    for line in text.splitlines(keepends=True):
        end = line_start + len(line)
        fence_match = _FENCE.match(line)
        if fence:
            if fence_match and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                parts.append(TextBlock(block_start, end, "code"))
                block_start, fence = end, ""
        elif fence_match:
            parts += _sentences(text, block_start, line_start)
            block_start, fence = line_start, fence_match[1]
        elif _HEADER.match(line):
            parts += [*_sentences(text, block_start, line_start), TextBlock(line_start, end, "header")]
            block_start = end
        elif not line.strip():
            parts += _sentences(text, block_start, end)
            block_start = end
        line_start = end
    parts += [TextBlock(block_start, line_start, "code")] if fence else _sentences(text, block_start, line_start)
    return _merge_blanks(text, parts)


def _sentences(text: str, start: int, stop: int) -> list[TextBlock]:
    cuts = [start, *(m.end() for m in _SENTENCE.finditer(text, start, stop)), stop]
    return [TextBlock(a, b, "sentence") for a, b in pairwise(cuts) if a < b]


def _merge_blanks(text: str, parts: list[TextBlock]) -> list[TextBlock]:
    """Join a blank block with the block before it; at the beginning, with the block after it."""
    merged: list[TextBlock] = []
    last_is_blank = False
    for block in parts:
        is_blank = not text[block.start:block.stop].strip()
        if merged and (last_is_blank or is_blank):
            last = merged[-1]
            merged[-1] = TextBlock(last.start, block.stop, block.kind if last_is_blank else last.kind)
            last_is_blank &= is_blank
        else:
            merged.append(block)
            last_is_blank = is_blank
    return merged


def similarities(parts: Blocks, vectors: Floats, around: int) -> Similarities:
    """Return the similarity of the two sides of each gap between neighbouring blocks, (n - 1,).

    A side is the sum of the unit vectors (n, dim) of its ``around`` nearest blocks; the value is the cosine of both
    sides, rounded, so that machines agree on ties. A header is apart from the block before, and stays with the next.
    """
    similar = np.empty(max(len(parts) - 1, 0))
    for gap in range(len(similar)):
        left = vectors[max(gap + 1 - around, 0) : gap + 1].sum(axis=0, dtype=np.float64)
        right = vectors[gap + 1 : gap + 1 + around].sum(axis=0, dtype=np.float64)
        scale = float(np.linalg.norm(left) * np.linalg.norm(right))
        similar[gap] = round(float(left @ right) / scale, 6) if scale else 0.0
        if parts[gap + 1].kind == "header":
            similar[gap] = _APART
        elif parts[gap].kind == "header":
            similar[gap] = _TOGETHER
    return similar


def valleys(similar: Similarities, cutoff: float) -> list[int]:
    """Return the gaps in valleys of similarity, and those before headers.

    The depth of a gap is the climb of similarity to the nearest peak on the left, plus that on the right (Hearst's
    depth score). A valley is a lowest point deeper than the mean depth + ``cutoff`` x its standard deviation over the
    text.

    >>> valleys(np.array([0.9, 0.8, 0.1, 0.8, 0.7, 0.8]), 0.5)
    [2]
    """
    cosine = np.flatnonzero(np.abs(similar) <= 1.01)
    depth = np.array([_climb(similar, int(g), -1) + _climb(similar, int(g), 1) for g in cosine])
    least = depth.mean() + cutoff * depth.std() if len(depth) else 0.0
    deep = [int(g) for g, d in zip(cosine, depth)
            if d > least and all(similar[g] <= similar[n] or similar[n] == _APART
                                 for n in (g - 1, g + 1) if 0 <= n < len(similar))]
    return sorted([*deep, *np.flatnonzero(similar == _APART).tolist()])


def _climb(similar: Similarities, gap: int, step: int) -> float:
    """Return the climb of similarity from a gap in one direction until it falls; a header ends the climb."""
    at = gap
    while 0 <= at + step < len(similar) and similar[at] <= similar[at + step] <= 1.01:
        at += step
    return float(similar[at] - similar[gap])


@stage
class Semantic(RoleChunker):
    """Pieces of at most ``size`` characters that begin at a header, or where neighbouring sentences differ in meaning.

    A stretch shorter than ``least`` joins the more similar neighbour. A stretch longer than ``size`` is cut at its
    least similar gap, repeatedly; a single long block (code, a long sentence) at separators. Pieces do not overlap.
    """

    chunking: ClassVar = "semantic"
    embedder: Embedder = Field(kw_only=True)
    size: Size = 1000  # characters at most; longer stretches are cut at their least similar gap
    least: Size = 200  # shorter stretches join the more similar neighbour, but not across a header
    around: Count = 2  # sentences compared on either side of a gap; a single one is noisy
    cutoff: float = 0.5  # least depth, in deviations above the mean; -0.5 is TextTiling's, and cuts often

    def __post_init__(self) -> None:
        if self.least > self.size:
            raise MemlabError(f"the least size ({self.least}) is above the size ({self.size})", where="write.chunk",
                              fix="lower least")

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return one memory per piece; each distinct sentence is encoded once."""
        whole = transcripts(tables, self.roles, self.speakers)[1]["text"].unique(maintain_order=True).to_list()
        parts = {text: blocks(text) for text in whole}
        stripped = {text: [text[b.start:b.stop].strip() for b in parts[text]] for text in whole}
        sentences = texts_frame(s for text in whole for s in stripped[text])
        place = {s: i for i, s in enumerate(sentences["text"])}
        vectors = store.vectors(self.embedder, sentences, "document")

        def cut(text: str) -> list[Span]:
            return self.cut(text, parts[text], vectors[[place[s] for s in stripped[text]]])

        return pieces(tables, self.roles, self.speakers, cut, self.kind)

    def cut(self, text: str, parts: Blocks, vectors: Floats) -> list[Span]:
        """Return the pieces of a text, given its blocks and their unit vectors (n, dim)."""
        if not parts:
            return []
        similar = similarities(parts, vectors, self.around)
        starts = [0, *(gap + 1 for gap in valleys(similar, self.cutoff))]
        groups = self._merge_short(parts, similar, list(pairwise([*starts, len(parts)])))
        return [span for low, high in groups for span in self._divide(text, parts, similar, low, high)]

    def _merge_short(self, parts: Blocks, similar: Similarities, groups: list[Span]) -> list[Span]:
        """Join each group that is too short with a neighbour, if both together fit into a piece."""
        at = 0
        while at < len(groups):
            low, high = groups[at]
            options = []
            if _length(parts, low, high) < self.least:
                options = [(float(similar[groups[left][1] - 1]), left) for left in (at - 1, at)
                           if 0 <= left < len(groups) - 1
                           and similar[groups[left][1] - 1] != _APART
                           and _length(parts, groups[left][0], groups[left + 1][1]) <= self.size]
            if not options:
                at += 1
                continue
            left = max(options, key=lambda option: (option[0], -option[1]))[1]
            groups[left : left + 2] = [(groups[left][0], groups[left + 1][1])]
            at = left
        return groups

    def _divide(self, text: str, parts: Blocks, similar: Similarities, low: int, high: int) -> list[Span]:
        """Cut blocks low..high at the least similar gap until each part fits, into parts of ``least`` if possible."""
        start, stop = parts[low].start, parts[high - 1].stop
        if stop - start <= self.size:
            return [(start, stop)]
        if high - low == 1:
            return split(text, start, stop, self.size, 0, _SEPARATORS)
        gaps = range(low, high - 1)
        roomy = [g for g in gaps if min(_length(parts, low, g + 1), _length(parts, g + 1, high)) >= self.least]
        gap = min(roomy or gaps, key=lambda g: (similar[g], g))
        return [*self._divide(text, parts, similar, low, gap + 1), *self._divide(text, parts, similar, gap + 1, high)]


def _length(parts: Blocks, low: int, high: int) -> int:
    return parts[high - 1].stop - parts[low].start
