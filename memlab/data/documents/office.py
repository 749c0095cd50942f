"""Readers of PDF and Word documents, by the libraries of an extra, in time and memory linear in the file's size."""

from __future__ import annotations

import importlib
import io
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from memlab.data.documents.blocks import Document, DocumentBlock, in_a_row, paragraphs
from memlab.errors import MemlabError
from memlab.runtime.foreign import MOST_BYTES, unpacked_limit

TIMES = 20
"""Times the size of the file that its pages may unpack to: text packs to a third, a bomb to a thousandth."""

AT_LEAST = 10_000_000
"""Bytes that the pages of any file may unpack to."""

OF_FORMS = 4
"""Times the limit of pages for parts that pages share (forms): pypdf looks them up some four times for each use."""

MOST_ELEMENTS = 500_000
"""XML elements of all parts together: each takes some 400 bytes and 10 microseconds; a page of text has about 100."""

_W, _MATH = (f"{{http://schemas.openxmlformats.org/{path}}}" for path in ("wordprocessingml/2006/main",
                                                                          "officeDocument/2006/math"))
_PARAGRAPH, _TABLE, _ROW, _CELL = (f"{_W}{name}" for name in ("p", "tbl", "tr", "tc"))
_TEXTS = {f"{_W}t", f"{_MATH}t"}
_SIGNS = {f"{_W}tab": "\t", f"{_W}ptab": "\t", f"{_W}cr": "\n", f"{_W}br": "\n", f"{_W}noBreakHyphen": "-"}
_AROUND = {f"{_W}{name}" for name in ("sdt", "sdtContent", "customXml", "ins", "moveTo")}
"""Elements around paragraphs, tables, rows and cells: content controls, and tracked insertions."""

_NOT_READ = {*(f"{_W}{name}" for name in ("pPr", "rPr", "sdtPr", "del", "moveFrom", "txbxContent", "rt")),
             "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"}
"""Elements of a paragraph that hold formats, what was deleted or moved away, text boxes, or what stands there twice."""

_BEFORE_XML, _EBCDIC = b"\xef\xbb\xbf\xfe\xff\0 \t\r\n", "<?xml".encode("cp037")
"""Bytes that may stand before XML (marks of encodings and spaces), and how a part in EBCDIC begins."""

_PRINT = "print it to a new PDF, or save its text as .txt"
_PIECE = 1 << 20
_PACKS = r"/(?:Fl(?:ateDecode)?|LZW(?:Decode)?|RL|RunLengthDecode|BrotliDecode)"
_TWICE = re.compile(rf"{_PACKS}\s*(?:{_PACKS}|/A85|/ASCII85Decode|/AHx|/ASCIIHexDecode)(?![\w#])")
"""Filters that unpack what was unpacked: pypdf decodes a second one at a megabyte a second, whatever its limits."""


def pdf(raw: bytes) -> Document:
    """Read a PDF: blocks are separated by blank lines, or are whole pages (most PDFs hold no blank lines).

    A block's place is "page 3, 120": the page and the offset in its text.
    """
    pypdf = _library("pypdf", "pypdf")
    try:
        with _parser("PDF", "open it and save it again", pypdf.errors.DependencyError, pypdf.errors.LimitReachedError):
            _refuse_twice(raw.decode("latin-1"))
            reader = _pdf_reader(pypdf, raw)
            if reader.is_encrypted and not reader.decrypt(""):
                raise MemlabError("a password protects it", fix="save it without protection")
            texts = _pages(reader, len(raw))
    except pypdf.errors.DependencyError as fault:
        raise MemlabError("it is encrypted", fix="save it without protection") from fault
    except pypdf.errors.LimitReachedError as fault:
        raise MemlabError(f"pypdf refuses it (LimitReachedError: {str(fault)[:80]})", fix=_PRINT) from fault
    parts = [DocumentBlock(f"page {number}, {at}", block, at, number) for number, page in enumerate(texts, start=1)
             for at, block in paragraphs(page)]
    if not parts:
        raise MemlabError("there is no text in it; scanned pages are pictures", fix="let an OCR program add the text")
    return Document(None, parts)


def _pdf_reader(pypdf: Any, raw: bytes) -> Any:
    """Return a ``pypdf.PdfReader`` that refuses what is packed twice, and counts what it looks up of forms."""

    class GuardedReader(pypdf.PdfReader):  # type: ignore[misc, name-defined]
        of_forms = 0

        def get_object(self, reference: Any) -> Any:
            found = super().get_object(reference)
            if isinstance(found, pypdf.generic.StreamObject):
                filters = found.get("/Filter", pypdf.generic.NullObject()).get_object()
                _refuse_twice("".join(map(str, filters)) if isinstance(filters, list) else "")
                if found.get("/Subtype") == "/Form":
                    self.of_forms += len(found.get_data())
                    if self.of_forms > OF_FORMS * _most(len(raw)):
                        raise _too_much(len(raw))
            return found

    return GuardedReader(io.BytesIO(raw))


def _refuse_twice(text: str) -> None:
    if _TWICE.search(text):
        raise MemlabError("a part of it is packed twice", fix=_PRINT)


def _most(size: int) -> int:
    return max(AT_LEAST, TIMES * size)


def _too_much(size: int) -> MemlabError:
    return MemlabError(f"its pages unpack to more than {_most(size) / 1e6:,.0f} MB, the limit", fix=_PRINT)


def _pages(reader: Any, size: int) -> list[str]:
    """Return the text of each page of a file of ``size`` bytes.

    Raises MemlabError, before any text is read, if the contents of the pages unpack to more than the limit. Contents
    that several pages share count for each, since they are read for each.
    """
    unpacked = 0
    for page in reader.pages:
        contents = page.get_contents()
        unpacked += 0 if contents is None else len(contents.get_data())
        if unpacked > _most(size):
            raise _too_much(size)
    texts = []
    for page in reader.pages:
        texts.append(page.extract_text())
        if reader.of_forms > OF_FORMS * _most(size):  # pypdf goes on where a form is refused
            raise _too_much(size)
    return texts


def docx(raw: bytes, max_bytes: int = 1 << 30) -> Document:
    """Read a Word document: a block is a paragraph or a table (one row per line), with the headings before it.

    ``max_bytes``: size that it may unpack to. A block's place counts paragraphs and tables from 1. Tracked changes are
    taken as accepted. Page headers, footnotes, comments and text boxes are left out.
    """
    library = _library("docx", "python-docx")
    with _parser("Word document", "open it and save it again as .docx"):
        check_word(raw, max_bytes)
        document = library.Document(io.BytesIO(raw))
        is_heading = _headings(document.styles, _library("docx.enum.style", "python-docx").WD_STYLE_TYPE.PARAGRAPH)
        parts: list[tuple[str, str]] = []
        place, texts = "", []  # of the open block
        for number, part in enumerate(_within(document.element.body, _PARAGRAPH, _TABLE), start=1):
            is_table = part.tag == _TABLE
            text = table_text(part) if is_table else paragraph_text(part).strip()
            if not text:
                continue
            place = place or str(number)
            texts.append(text)
            if is_table or not is_heading(part):
                parts.append((place, "\n".join(texts)))
                place, texts = "", []
        if texts:
            parts.append((place, "\n".join(texts)))
    return Document(None, in_a_row(parts))


def check_word(raw: bytes, max_bytes: int) -> None:
    """Raise MemlabError if a document unpacks to too many bytes or elements; it is unpacked piece by piece."""
    most = min(max_bytes, unpacked_limit(len(raw)))
    with zipfile.ZipFile(io.BytesIO(raw)) as packed:
        size = sum(entry.file_size for entry in packed.infolist())
        if size > most:
            raise MemlabError(f"it unpacks to {size / 1e6:,.0f} MB, the limit is {most / 1e6:,.0f}",
                              fix="take the pictures out, or split it")
        elements = 0
        for entry in packed.infolist():
            with packed.open(entry) as stream:
                piece = stream.read(_PIECE)
                mark = _EBCDIC[:1] if piece.startswith(_EBCDIC) else b"<"
                if not piece.lstrip(_BEFORE_XML).startswith(mark):  # a picture or a font, whatever its name
                    continue
                while piece:
                    elements += piece.count(mark) - piece.count(b"</")
                    if elements > MOST_ELEMENTS:
                        raise MemlabError(f"it has more than {MOST_ELEMENTS:,} XML elements (paragraphs, runs, cells), "
                                          "the limit", fix="split it")
                    piece = stream.read(_PIECE)


def _headings(styles: Any, paragraph_type: Any) -> Callable[[Any], bool]:
    """Return a predicate of headings among the elements of paragraphs, by the name of their style.

    The styles are read once: python-docx searches all of them for each paragraph.
    """
    default = styles.default(paragraph_type)
    default_name = "" if default is None else default.name or ""
    names: dict[str, str] = {}
    for style in styles:
        names.setdefault(style.style_id, (style.name or "") if style.type == paragraph_type else default_name)
    return lambda paragraph: names.get(paragraph.style, default_name).startswith("Heading")


def _within(parent: Any, *tags: str) -> Iterator[Any]:
    """Yield the elements of these tags in another, those in content controls and tracked insertions too."""
    for child in parent.iterchildren():
        if child.tag in _AROUND:
            yield from _within(child, *tags)
        elif child.tag in tags:
            yield child


def paragraph_text(paragraph: Any) -> str:
    """Return the text of a paragraph's element: of its runs, links, fields, controls and tracked insertions."""
    walk = _library("lxml.etree", "python-docx").iterwalk(paragraph, events=("start",))
    parts = []
    for _, element in walk:
        if element.tag in _NOT_READ:
            walk.skip_subtree()
        elif element.tag in _TEXTS:
            parts.append(element.text or "")
        elif element.get(f"{_W}type", "textWrapping") == "textWrapping":  # else the break of a page or a column
            parts.append(_SIGNS.get(element.tag, ""))
    return "".join(parts)


def table_text(table: Any) -> str:
    """Format a table's element, one row per line; a merged cell stands once in each of its rows.

    Spans of columns are added up, never unfolded. Raises MemlabError if the text is over the limit.
    """
    rows: list[str] = []
    above: dict[int, str] = {}
    size = 0
    for row in _within(table, _ROW):
        column, here = row.grid_before, {}
        for cell in _within(row, _CELL):
            here[column] = (above.get(column, "") if cell.vMerge == "continue" else "\n".join(
                table_text(part) if part.tag == _TABLE else paragraph_text(part)
                for part in _within(cell, _PARAGRAPH, _TABLE)).strip())
            size += len(here[column]) + 3
            column += cell.grid_span
            if size > MOST_BYTES:
                raise MemlabError(f"a table has more than {MOST_BYTES / 1e6:g} MB of text, merged cells counted in "
                                  "each row, the limit", fix="split it")
        above = here
        rows.append(" | ".join(here.values()).strip())
    return "\n".join(row for row in rows if row.strip(" |"))


@contextmanager
def _parser(what: str, fix: str, *known: type[Exception]) -> Iterator[None]:
    """Raise as MemlabError what a library raises in the block: of a damaged file, that may be anything."""
    passed: tuple[type[Exception], ...] = (MemlabError, *known)
    try:
        yield
    except passed:
        raise
    except Exception as fault:
        raise MemlabError(f"it is no {what} that can be read ({type(fault).__name__}: {str(fault)[:80]})",
                          fix=fix) from fault


def _library(module: str, package: str) -> Any:
    """Import a library of the extra."""
    try:
        return importlib.import_module(module)
    except ImportError as fault:
        raise MemlabError(f"reading it needs {package}",
                          fix="pip install 'memlab[documents]'") from fault
