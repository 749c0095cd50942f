"""The facts of a session as one text, cut into chunks, as RAG Memory Provider v1 stores them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from memlab.errors import MemlabError
from memlab.stage import stage

Span = tuple[int, int]

HEADER = "# Memories from %Y-%m-%d\n"
"""The line above each chunk of a dated session."""

_BREAKS = tuple(re.compile(p) for p in (r"[.!?\u3002\uff01\uff1f][\"')\]]*(?:\s+|(?<=[\u3002\uff01\uff1f]))",
                                        r"\n", r"\s"))


@stage
class Chunked:
    """Settings of chunks of facts: at most ``size`` characters, of which ``overlap`` repeat the chunk before."""

    size: Annotated[int, Field(ge=1)] = 1600  # characters: v1's
    overlap: Annotated[int, Field(ge=0)] = 320  # v1's

    def __post_init__(self) -> None:
        if self.overlap * 2 > self.size:
            raise MemlabError(f"the overlap ({self.overlap}) is more than half the size ({self.size}), beyond which "
                              "chunks break", where="write.extract.chunked", fix="lower overlap")


def cuts(text: str, size: int, overlap: int) -> list[Span]:
    """Cut a text after the last sentence within ``size``, else after the last newline, else space, else anywhere.

    A break counts only beyond half the size: our reading of an unclear description ("minimum overlap threshold at 50 %
    of chunk size"). A chunk begins ``overlap`` characters before the end of the one before, or at the next word.

    >>> [("One two. Three four. Five."[a:b]) for a, b in cuts("One two. Three four. Five.", 15, 0)]
    ['One two. ', 'Three four. ', 'Five.']
    """
    spans: list[Span] = []
    start = 0
    while len(text) - start > size:
        end = _end(text, start, size)
        spans.append((start, end))
        begin = re.compile(r"(?<=\s)\S|\Z").search(text, max(end - overlap, start + 1))
        start = begin.start() if begin and begin.start() < end else end
    return [*spans, (start, len(text))] if text[start:].strip() or not spans else spans


def _end(text: str, start: int, size: int) -> int:
    for pattern in _BREAKS:
        if breaks := [m.end() for m in pattern.finditer(text, start + size // 2, start + size)]:
            return breaks[-1]
    return start + size


def chunks(lines: Sequence[str], cut: Chunked) -> list[tuple[str, list[int]]]:
    """Join lines and cut them; return each chunk with the positions of the lines of which it shows a part."""
    text = "\n".join(lines)
    ends = [0]
    for line in lines:
        ends.append(ends[-1] + len(line) + 1)
    return [(text[a:b].strip(), [i for i in range(len(lines)) if ends[i] < b and ends[i + 1] - 1 > a])
            for a, b in cuts(text, cut.size, cut.overlap)]
