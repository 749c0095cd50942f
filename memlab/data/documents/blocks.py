"""Readers of plain text, Markdown and JSON, and the blocks of a document."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from typing import Any, NamedTuple

from memlab.support.clock import read_moment
from memlab.support.errors import MemlabError
from memlab.support.foreign import load_json

_FRONT = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_DATE = re.compile(r"^(?:date|said_on)[ \t]*:[ \t]*([^#\n]*)", re.MULTILINE)
_KEY = re.compile(r"[\w-]+[ \t]*:")
_YAML = re.compile(r"^(?:[\w-]+[ \t]*:.*|[ \t]+.*|-[ \t].*|#.*|[ \t]*)$")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_HEADING = re.compile(r"#{1,6}[ \t]+\S")


class DocumentBlock(NamedTuple):
    """A paragraph, a table or an entry.

    place: name of where in its document it begins. offset: characters before it in the file's text, in a PDF in the
    text of its ``page`` (counted from 1), else in the texts of the blocks, with a blank line between them.
    """

    place: str
    text: str
    offset: int
    page: int | None = None


class Document(NamedTuple):
    """A document's blocks in order, and the date that it states, as written there; None for none."""

    stated: str | None
    blocks: list[DocumentBlock]

    @property
    def said_on(self) -> date | datetime | None:
        """The date or time that is stated; raises MemlabError for one in another form than ISO's."""
        return None if self.stated is None else read_moment(self.stated, "its date")


def _decode(raw: bytes) -> str:
    """Decode UTF-8 text; raise MemlabError for another encoding, and for no text."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise MemlabError("it is UTF-16", fix="save it as UTF-8")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise MemlabError(f"byte {fault.start} is not UTF-8", fix="save it as UTF-8") from fault
    if "\0" in text:
        raise MemlabError("it holds null bytes, so it is no text", fix="correct its ending, or move it elsewhere")
    return text


def text(raw: bytes) -> Document:
    """Read plain text: blocks are separated by blank lines; a block's place is the offset of its first character.

    >>> text(b"---\\ndate: 2023-05-20\\n---\\nOne.\\n\\nTwo,\\nstill two.\\n").blocks
    [DocumentBlock(place='25', text='One.', offset=25, page=None), \
DocumentBlock(place='31', text='Two,\\nstill two.', offset=31, page=None)]
    """
    return _read(raw, markdown=False)


def markdown(raw: bytes) -> Document:
    """Read Markdown like text, but never cut fenced code, and put a heading into the block that follows it."""
    return _read(raw, markdown=True)


def json_file(raw: bytes) -> Document:
    """Read JSON: a block is an entry of the outermost list or object, with one line "path: value" per value.

    >>> json_file(b'[{"who": "Ann", "pets": ["cat", "dog"]}, "A note."]').blocks  # doctest: +NORMALIZE_WHITESPACE
    [DocumentBlock(place='[0]', text='who: Ann\\npets[0]: cat\\npets[1]: dog', offset=0, page=None),
     DocumentBlock(place='[1]', text='A note.', offset=36, page=None)]
    """
    try:
        value = load_json(_decode(raw))
        entries = list(_children("", value)) if isinstance(value, dict | list) else [("", value)]
        named = isinstance(value, dict)
        texts = [(place, "\n".join(_lines(entry, place if named else ""))) for place, entry in entries]
    except (ValueError, RecursionError) as fault:
        raise MemlabError(f"it is not JSON ({str(fault)[:80]})", fix="correct it") from fault
    stated = next((value[k] for k in ("date", "said_on") if isinstance(value, dict) and value.get(k)), None)
    return Document(None if stated is None else str(stated),
                    in_a_row((place, text) for place, text in texts if text.strip()))


def in_a_row(parts: Iterable[tuple[str, str]]) -> list[DocumentBlock]:
    """Return the blocks of (place, text) whose offsets count the texts before them."""
    blocks, offset = [], 0
    for place, text in parts:
        blocks.append(DocumentBlock(place, text, offset))
        offset += len(text) + len("\n\n")
    return blocks


def paragraphs(whole: str, start: int = 0, *, markdown: bool = False) -> Iterator[tuple[int, str]]:
    """Yield (offset, text) of the parts between blank lines, from ``start`` on."""
    begin: int | None = None  # of the open block
    at, fence, heading = start, "", False  # heading: the block is nothing but headings so far
    for line in whole[start:].splitlines(keepends=True):
        blank = not line.strip()
        fenced = _FENCE.match(line) if markdown else None
        if begin is None and not blank:
            begin, heading = at, markdown
        if fence:
            if fenced and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif fenced:
            fence, heading = fenced[1], False
        elif blank and begin is not None and not heading:
            yield _cut(whole, begin, at)
            begin = None
        elif not blank:
            if markdown and not heading and _HEADING.match(line) and begin is not None and begin < at:
                yield _cut(whole, begin, at)
                begin, heading = at, True
            heading = heading and bool(_HEADING.match(line))
        at += len(line)
    if begin is not None:
        yield _cut(whole, begin, len(whole))


def _cut(whole: str, begin: int, end: int) -> tuple[int, str]:
    """Return the text between two places without the spaces around it, and where it begins."""
    text = whole[begin:end].lstrip()
    return end - len(text), text.rstrip()


def _read(raw: bytes, *, markdown: bool) -> Document:
    original = _decode(raw)
    breaks = [found.start() - n for n, found in enumerate(re.finditer("\r\n", original))]  # places of the line ends
    whole = original.replace("\r\n", "\n").replace("\r", "\n")
    start, stated = 0, None
    front = _FRONT.match(whole)
    if front and _is_mapping(front[1].splitlines()):  # else text between two rules
        found = _DATE.search(front[1])
        if found or markdown:  # in plain text, keys may be speakers
            start = front.end()
        stated = found[1].strip().strip("\"'") or None if found else None
    blocks = [(at + bisect_left(breaks, at), block) for at, block in paragraphs(whole, start, markdown=markdown)]
    return Document(stated, [DocumentBlock(str(at), block, at) for at, block in blocks])


def _is_mapping(lines: list[str]) -> bool:
    """Return whether the lines are a mapping in YAML: keys with values, none with a list or a sentence before them."""
    first = next((line for line in lines if line.strip() and not line.startswith("#")), None)
    return (first is None or _KEY.match(first) is not None) and all(map(_YAML.match, lines))


def _lines(value: Any, path: str) -> Iterator[str]:
    """Yield a line "path: value" for every value that is neither list nor object nor null."""
    if isinstance(value, dict | list):
        for inner_path, inner in _children(path, value):
            yield from _lines(inner, inner_path)
    elif value is not None:
        text = value if isinstance(value, str) else json.dumps(value)
        yield f"{path}: {text}" if path else text


def _children(path: str, value: dict[str, Any] | list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the values of an object or a list with their paths."""
    if isinstance(value, dict):
        yield from ((f"{path}.{key}" if path else str(key), inner) for key, inner in value.items())
    else:
        yield from ((f"{path}[{place}]", inner) for place, inner in enumerate(value))
