"""ElizaOS' splitter as published: only its first separator ever cuts."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables
from memlab.write.chunk import EVERYONE, READS, WRITES, Roles, kind_of
from memlab.write.pieces import Overlap, Size, Span, check_overlap, merged, parts, pieces

Separators = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(strict=False, min_length=1)]


def published(text: str, size: int, overlap: int, separators: tuple[str, ...]) -> list[Span]:
    """Cut at the first separator that yields anything but blanks, join what is short, leave whole what is long.

    A text that is not blank yields something whether the separator occurs in it or not, so the first separator has
    the only say. Pieces repeat whole paragraphs of the one before, as far as these fit into the overlap.

    >>> published("aa. bb\\n\\ncc\\n\\ndd", 6, 0, ("\\n\\n", ". "))
    [(0, 8), (8, 14)]
    """
    for mark in separators:
        found = parts(text, 0, len(text), mark)
        if any(text[a:b].strip() for a, b in found):
            return _joined(found, size, overlap)
    return []


def _joined(found: list[Span], size: int, overlap: int) -> list[Span]:
    out: list[Span] = []
    short: list[Span] = []
    for a, b in found:
        if b - a <= size:
            short.append((a, b))
        else:
            out += [*merged(short, size, overlap), (a, b)]
            short = []
    return out + merged(short, size, overlap)


@stage
class FirstSeparator:
    """Pieces between blank lines, joined up to ``size`` characters; a longer paragraph stays whole.

    The flaw is ElizaOS' own: its loop over the separators returns after the first that yields anything, so line,
    sentence and word are never tried and ``size`` binds nothing. ``memlab.write.pieces.Recursive`` is the corrected
    form.
    """

    reads: ClassVar = READS
    writes: ClassVar = WRITES
    roles: Roles = EVERYONE
    speakers: bool = True
    size: Size = 1000
    overlap: Overlap = 200
    separators: Separators = ("\n\n", "\n", ". ", " ")

    def __post_init__(self) -> None:
        check_overlap(self.overlap, self.size)

    @property
    def kind(self) -> str:
        """The kind of memory that this writes."""
        return kind_of("elizaos", self.roles)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return one memory a piece."""
        def cut(text: str) -> list[Span]:
            return published(text, self.size, self.overlap, self.separators)

        return pieces(tables, self.roles, self.speakers, cut, self.kind)
