"""ElizaOS's splitter of texts, with the flaw that it was published with."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from memlab.stage import stage
from memlab.write.chunk.length import LengthChunker, Separators, Span


@stage
class FirstSeparator(LengthChunker):
    """ElizaOS's splitter as published; its pieces are the exact characters, spaces included.

    Segments between separators are joined while they fit. When the next one does not fit, the piece is closed, and the
    next piece begins with the last ``overlap`` characters of the closed one (cut anywhere), the separator and the
    segment, whatever size that makes. The flaw is ElizaOS's own: the loop over separators returns after the first that
    yields anything, so a long paragraph is never cut at lines, sentences or words. ``Recursive`` is the corrected form.
    """

    chunking: ClassVar = "elizaos"
    trim: ClassVar = False
    # blank line (between turns, too), line, sentence, word; a later one is used only if those before yield nothing
    separators: Annotated[Separators, Field(min_length=1)] = ("\n\n", "\n", ". ", " ")

    def cut(self, text: str) -> list[Span]:
        r"""Return the pieces of a transcript; a blank one has none.

        >>> FirstSeparator(size=6, overlap=1).cut("aa. bb\n\ncc\n\ndd")
        [(0, 6), (5, 10), (9, 14)]
        """
        if len(text) <= self.size:
            return [(0, len(text))] if text.strip() else []
        joined = next((spans for mark in self.separators if (spans := self._join(text, mark))), [])
        return [(a, b) for a, b in joined if text[a:b].strip()]

    def _join(self, text: str, mark: str) -> list[Span]:
        """Join the segments between the marks; the first segments, if empty, and their marks are left out."""
        pieces: list[Span] = []
        first = stop = at = 0  # the open piece is text[first:stop]; the segment begins at ``at``
        for segment in text.split(mark):
            end = at + len(segment)
            if first == stop:
                first = at
            elif end - first > self.size:
                pieces.append((first, stop))
                first = max(first, stop - self.overlap)
            stop, at = end, end + len(mark)
        return [*pieces, (first, stop)] if first < stop else pieces
