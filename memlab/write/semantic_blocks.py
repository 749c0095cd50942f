"""A text as the blocks that a semantic splitter never likes to cut: headers, fenced code, sentences of paragraphs."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Kind = Literal["header", "code", "sentence"]

# a turn's line begins with who speaks, so a header or a fence may stand behind a name and a colon
_NAME = r"(?:[^\n:`#]{1,120}: )?"
_HEADER = re.compile(_NAME + r"#{1,6}[ \t]+\S")
_FENCE = re.compile(_NAME + r" {0,3}(```+|~~~+)")
_SENTENCE = re.compile(r"[.!?…]+[\"'”’)\]]*\s+")


class Block(NamedTuple):
    """text[start:stop], white space behind it included, so that the blocks of a text tile it."""

    start: int
    stop: int
    kind: Kind


def blocks(text: str) -> list[Block]:
    r"""Cut a text into blocks.

    A header is a line of its own, fenced code is one block with its fences (to the end of the text where nothing
    closes it), all else is paragraphs between blank lines, cut after every sentence.

    >>> [(b.kind, "# T\nOne. Two.\n\n```\nx. y\n```\n"[b.start:b.stop]) for b in blocks(
    ...     "# T\nOne. Two.\n\n```\nx. y\n```\n")]
    [('header', '# T\n'), ('sentence', 'One. '), ('sentence', 'Two.\n\n'), ('code', '```\nx. y\n```\n')]
    """
    found: list[Block] = []
    open_at = at = 0  # where the paragraph or the code begins; where this line does
    fence = ""
    for line in text.splitlines(keepends=True):
        end = at + len(line)
        marked = _FENCE.match(line)
        if fence:
            if marked and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                found.append(Block(open_at, end, "code"))
                open_at, fence = end, ""
        elif marked or _HEADER.match(line):
            found += _sentences(text, open_at, at)
            open_at = at
            if marked:
                fence = marked[1]
            else:
                found.append(Block(at, end, "header"))
                open_at = end
        elif not line.strip():
            found += _sentences(text, open_at, end)
            open_at = end
        at = end
    found += [Block(open_at, at, "code")] if fence else _sentences(text, open_at, at)
    return _without_blanks(text, found)


def _sentences(text: str, start: int, stop: int) -> list[Block]:
    cuts = [start, *(m.end() for m in _SENTENCE.finditer(text, start, stop)), stop]
    return [Block(a, b, "sentence") for a, b in zip(cuts, cuts[1:]) if a < b]


def _without_blanks(text: str, found: list[Block]) -> list[Block]:
    """Give white space to the block before it; at the beginning, to the one behind."""
    out: list[Block] = []
    for block in found:
        if out and (not text[block.start:block.stop].strip() or not text[out[-1].start:out[-1].stop].strip()):
            kind = block.kind if not text[out[-1].start:out[-1].stop].strip() else out[-1].kind
            out[-1] = Block(out[-1].start, block.stop, kind)
        else:
            out.append(block)
    return out
