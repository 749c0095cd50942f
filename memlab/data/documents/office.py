"""Readers of PDF and Word documents, by the libraries of the extra ``documents``."""

from __future__ import annotations

import importlib
import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from memlab.data.documents.blocks import Document, DocumentBlock, in_a_row, paragraphs
from memlab.support.errors import MemlabError

MOST_UNPACKED = 400_000_000
"""Bytes that a Word document may unpack to: text packs to a tenth, a bomb to a thousandth."""

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_TABLE = f"{_W}tbl"
_AROUND = [f"{_W}{name}" for name in ("sdt", "sdtContent", "customXml", "ins", "moveTo")]
"""Elements around paragraphs, rows, cells and runs: content controls, and tracked insertions."""

_NOT_READ = [*(f"{_W}{name}" for name in ("sdtPr", "del", "moveFrom", "txbxContent", "rt")),
             "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"]
"""Elements that hold formats of controls, what was deleted or moved away, text boxes, or what stands there twice."""

_TEXT = " | ".join(f".//w:r/w:{name}" for name in ("t", "tab", "ptab", "br", "cr", "noBreakHyphen"))
"""Parts of a paragraph that python-docx knows as text; also those of links and fields."""


def pdf(raw: bytes) -> Document:
    """Read a PDF: blocks are separated by blank lines, or are whole pages (most PDFs hold no blank lines).

    A block's place is "page 3, 120": the page and the offset in its text.
    """
    pypdf = _library("pypdf", "pypdf")
    with _parser("PDF", "open it and save it again without protection, or save its text as .txt"):
        reader = pypdf.PdfReader(io.BytesIO(raw))
        if reader.is_encrypted and not reader.decrypt(""):
            raise MemlabError("a password protects it", fix="save it without protection")
        texts = [page.extract_text() for page in reader.pages]
    parts = [DocumentBlock(f"page {number}, {at}", block, at, number) for number, page in enumerate(texts, start=1)
             for at, block in paragraphs(page)]
    if not parts:
        raise MemlabError("there is no text in it; scanned pages are pictures", fix="let an OCR program add the text")
    return Document(None, parts)


def docx(raw: bytes) -> Document:
    """Read a Word document: a block is a paragraph or a table (one row per line), with the headings before it.

    A block's place counts paragraphs and tables from 1. Tracked changes are taken as accepted. Page headers, footnotes,
    comments, formulas and text boxes are left out.
    """
    library = _library("docx", "python-docx")
    with _parser("Word document", "open it and save it again as .docx"):
        with zipfile.ZipFile(io.BytesIO(raw)) as packed:
            size = sum(entry.file_size for entry in packed.infolist())
        if size > MOST_UNPACKED:
            raise MemlabError(f"it unpacks to {size / 1e6:,.0f} MB, the limit is {MOST_UNPACKED / 1e6:,.0f}",
                              fix="take the pictures out, or split it")
        document = library.Document(io.BytesIO(raw))
        etree = importlib.import_module("lxml.etree")
        etree.strip_elements(document.element.body, *_NOT_READ, with_tail=False)
        etree.strip_tags(document.element.body, *_AROUND)
        parts: list[tuple[str, str]] = []
        place, texts = "", list[str]()  # of the open block
        for number, part in enumerate(document.iter_inner_content(), start=1):
            if not (text := _text_of(part._element)):
                continue
            place = place or str(number)
            texts.append(text)
            if part._element.tag == _TABLE or not (part.style.name or "").startswith("Heading"):
                parts.append((place, "\n".join(texts)))
                place, texts = "", []
        if texts:
            parts.append((place, "\n".join(texts)))
    return Document(None, in_a_row(parts))


def _text_of(element: Any) -> str:
    """Return the text of a paragraph, or of a table: one row per line, a merged cell once in each of its rows."""
    if element.tag != _TABLE:
        return "".join(map(str, element.xpath(_TEXT))).strip()
    rows: list[str] = []
    above: dict[int, str] = {}  # column -> text
    for row in element.tr_lst:
        column, here = row.grid_before, {}
        for cell in row.tc_lst:
            inner = "\n".join(map(_text_of, cell.inner_content_elements)).strip()
            here[column] = above.get(column, "") if cell.vMerge == "continue" else inner
            column += cell.grid_span
        above = here
        rows.append(" | ".join(here.values()).strip())
    return "\n".join(row for row in rows if row.strip(" |"))


@contextmanager
def _parser(what: str, fix: str) -> Iterator[None]:
    """Raise as MemlabError what a library raises in the block: of a damaged file, that may be anything."""
    try:
        yield
    except MemlabError:
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
