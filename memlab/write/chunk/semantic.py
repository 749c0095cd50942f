"""Sessions to memories where the subject changes: headers, and valleys of similarity between neighbouring sentences.

After Hearst, "TextTiling: Segmenting Text into Multi-paragraph Subtopic Passages" (Computational Linguistics 23(1),
1997), with an encoder's vectors in the place of word counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from memlab.errors import MemlabError
from memlab.models.protocols import Embedder, Floats
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables, texts_frame
from memlab.write.chunk.length import Size, Span, pieces, split, transcripts
from memlab.write.chunk.turns import RoleChunker

Kind = Literal["header", "code", "sentence"]
Count = Annotated[int, Field(ge=1)]
Similarities = NDArray[np.float64]

_SEPARATORS = ("\n\n", "\n", ". ", " ")  # for a single block that is longer than a piece may be
_APART, _TOGETHER = -2.0, 2.0  # beyond any cosine: before a header, and between a header and its text

# a turn's line begins with the speaker, so a header or a fence may follow a name and a colon
_NAME = r"(?:[^\n:`#]{1,120}: )?"
_HEADER = re.compile(_NAME + r"#{1,6}[ \t]+\S")
_FENCE = re.compile(_NAME + r" {0,3}(```+|~~~+)")
_SENTENCE = re.compile(r"[.!?…]+[\"'”’)\]]*\s+")


class TextBlock(NamedTuple):
    """text[start:stop], white space behind it included, so that the blocks of a text tile it."""

    start: int
    stop: int
    kind: Kind


Blocks = Sequence[TextBlock]


def blocks(text: str) -> list[TextBlock]:
    r"""Cut a text into blocks.

    A header is one line. Fenced code is one block with its fences, up to the end of the text if nothing closes it. All
    else is paragraphs between blank lines, cut after every sentence.

    >>> [(b.kind, "# T\nOne. Two.\n\n```\nx. y\n```\n"[b.start:b.stop]) for b in blocks(
    ...     "# T\nOne. Two.\n\n```\nx. y\n```\n")]
    [('header', '# T\n'), ('sentence', 'One. '), ('sentence', 'Two.\n\n'), ('code', '```\nx. y\n```\n')]
    """
    parts: list[TextBlock] = []
    open_at = at = 0  # where the paragraph or the code begins; where this line does
    fence = ""
    for line in text.splitlines(keepends=True):
        end = at + len(line)
        marked = _FENCE.match(line)
        if fence:
            if marked and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                parts.append(TextBlock(open_at, end, "code"))
                open_at, fence = end, ""
        elif marked or _HEADER.match(line):
            parts += _sentences(text, open_at, at)
            open_at = at
            if marked:
                fence = marked[1]
            else:
                parts.append(TextBlock(at, end, "header"))
                open_at = end
        elif not line.strip():
            parts += _sentences(text, open_at, end)
            open_at = end
        at = end
    parts += [TextBlock(open_at, at, "code")] if fence else _sentences(text, open_at, at)
    return _without_blanks(text, parts)


def _sentences(text: str, start: int, stop: int) -> list[TextBlock]:
    cuts = [start, *(m.end() for m in _SENTENCE.finditer(text, start, stop)), stop]
    return [TextBlock(a, b, "sentence") for a, b in zip(cuts, cuts[1:]) if a < b]


def _without_blanks(text: str, parts: list[TextBlock]) -> list[TextBlock]:
    """Add white space to the block before it; at the beginning, to the block after it."""
    out: list[TextBlock] = []
    for block in parts:
        blank = bool(out) and not text[out[-1].start:out[-1].stop].strip()
        if out and (blank or not text[block.start:block.stop].strip()):
            out[-1] = TextBlock(out[-1].start, block.stop, block.kind if blank else out[-1].kind)
        else:
            out.append(block)
    return out


def similarities(parts: Blocks, vectors: Floats, around: int) -> Similarities:
    """Return the similarity of the two sides of each gap between neighbouring blocks. Shape (n - 1,).

    A side is the sum of the unit vectors (n, dim) of its ``around`` nearest blocks; the value is the cosine of both
    sides, rounded, so that machines agree on ties. A header is apart from the block before and together with the next.
    """
    out = np.empty(max(len(parts) - 1, 0))
    for gap in range(len(out)):
        left = vectors[max(gap + 1 - around, 0) : gap + 1].sum(axis=0, dtype=np.float64)
        right = vectors[gap + 1 : gap + 1 + around].sum(axis=0, dtype=np.float64)
        scale = float(np.linalg.norm(left) * np.linalg.norm(right))
        out[gap] = round(float(left @ right) / scale, 6) if scale else 0.0
        if parts[gap + 1].kind == "header":
            out[gap] = _APART
        elif parts[gap].kind == "header":
            out[gap] = _TOGETHER
    return out


def valleys(similar: Similarities, cutoff: float) -> list[int]:
    """Return the gaps at which similarity dips deep enough, and those before headers.

    A gap's depth is how far similarity climbs from it to the nearest peak on the left, plus the same on the right
    (Hearst's depth score); a valley is a lowest point whose depth is above the mean depth + ``cutoff`` x its standard
    deviation over the text.

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
    """Return how far similarity climbs from a gap in one direction until it falls; a header ends the climb."""
    at = gap
    while 0 <= at + step < len(similar) and similar[at] <= similar[at + step] <= 1.01:
        at += step
    return float(similar[at] - similar[gap])


@stage
class Semantic(RoleChunker):
    """Pieces of at most ``size`` characters that begin at a header, or where neighbouring sentences part in meaning.

    A stretch shorter than ``least`` joins the more similar neighbour; one longer than ``size`` is cut at its least
    similar gap, repeatedly; a single long block (code, an endless sentence) by separators. Pieces do not overlap.
    """

    chunking: ClassVar = "semantic"
    embedder: Embedder = Field(kw_only=True)
    size: Size = 1000  # characters at most; longer stretches are cut at their least similar gap
    least: Size = 200  # shorter stretches join the more similar neighbour, except over a header
    around: Count = 2  # sentences on either side of a gap that are compared; one alone is noisy
    # deviations above the mean depth from which a valley counts; -0.5 is TextTiling's, and cuts often
    cutoff: float = 0.5

    def __post_init__(self) -> None:
        if self.least > self.size:
            raise MemlabError(f"the least size ({self.least}) is above the size ({self.size})", where="write.chunk",
                              fix="lower least")

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return one memory per piece; every distinct sentence is encoded once."""
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
        groups = self._joined(parts, similar, list(pairwise([*starts, len(parts)])))
        return [span for low, high in groups for span in self._divided(text, parts, similar, low, high)]

    def _joined(self, parts: Blocks, similar: Similarities, groups: list[Span]) -> list[Span]:
        """Join every group that is too short to a neighbour, if both together are no longer than a piece may be."""
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

    def _divided(self, text: str, parts: Blocks, similar: Similarities, low: int, high: int) -> list[Span]:
        """Cut blocks low..high at the least similar gap until each part fits; parts of ``least`` where it can be."""
        start, stop = parts[low].start, parts[high - 1].stop
        if stop - start <= self.size:
            return [(start, stop)]
        if high - low == 1:
            return split(text, start, stop, self.size, 0, _SEPARATORS)
        gaps = range(low, high - 1)
        roomy = [g for g in gaps if min(_length(parts, low, g + 1), _length(parts, g + 1, high)) >= self.least]
        gap = min(roomy or gaps, key=lambda g: (similar[g], g))
        return [*self._divided(text, parts, similar, low, gap + 1), *self._divided(text, parts, similar, gap + 1, high)]


def _length(parts: Blocks, low: int, high: int) -> int:
    return parts[high - 1].stop - parts[low].start
