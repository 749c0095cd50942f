"""Readers of a folder's documents: md, txt and json by this package, pdf and docx by the libraries of an extra.

All faults are collected; each names its file and how to correct it.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memlab.data.documents import blocks, pages, word
from memlab.data.documents.blocks import Document, DocumentBlock, paragraphs
from memlab.data.jsonl import QUESTIONS
from memlab.errors import MemlabError
from memlab.runtime.json_limits import MOST_BYTES
from memlab.text.display import replace_surrogates, sanitise

_UNPACKED = 20  # times its limit that a docx may unpack to: text packs to a tenth, a bomb to a thousandth


def pdf(raw: bytes) -> Document:
    """Read a PDF: blocks are separated by blank lines, or are whole pages (most PDFs hold no blank lines).

    A block's place is "page 3, 120": the page and the offset in its text.
    """
    pypdf = _library("pypdf", "pypdf")
    try:
        reader = pypdf.PdfReader(io.BytesIO(raw))
        if reader.is_encrypted and not reader.decrypt(""):
            raise MemlabError("a password protects it", fix="save it without protection")
        texts = pages.texts(reader, len(raw))
    except pypdf.errors.DependencyError as fault:
        raise MemlabError("it is encrypted", fix="save it without protection") from fault
    except pypdf.errors.LimitReachedError as fault:
        raise MemlabError(f"pypdf refuses it (LimitReachedError: {str(fault)[:80]})",
                          fix="print it to a new PDF, or save its text as .txt") from fault
    except MemlabError:
        raise
    except Exception as fault:  # a damaged file may raise anything inside a parser
        raise MemlabError(f"it is no PDF that can be read ({type(fault).__name__}: {str(fault)[:80]})",
                          fix="open it and save it again") from fault
    parts = [DocumentBlock(f"page {number}, {at}", block) for number, page in enumerate(texts, start=1)
             for at, block in paragraphs(page)]
    if not parts:
        raise MemlabError("there is no text in it; scanned pages are pictures", fix="let an OCR program add the text")
    return Document(None, parts)


def docx(raw: bytes, max_bytes: int = 1 << 30) -> Document:
    """Read a Word document: a block is a paragraph or a table (one row per line), with the headings before it.

    ``max_bytes``: size that it may unpack to. A block's place counts paragraphs and tables from 1. Page headers,
    footnotes and text boxes are left out.
    """
    library = _library("docx", "python-docx")
    try:
        word.check(raw, max_bytes)
        document = library.Document(io.BytesIO(raw))
        is_heading = word.headings(document.styles, _library("docx.enum.style", "python-docx").WD_STYLE_TYPE.PARAGRAPH)
        cell_class = _library("docx.table", "python-docx")._Cell
        parts: list[DocumentBlock] = []
        place, texts = "", []  # of the open block
        for number, part in enumerate(document.iter_inner_content(), start=1):
            is_table = hasattr(part, "rows")
            text = word.table(part, cell_class) if is_table else part.text.strip()
            if not text:
                continue
            place = place or str(number)
            texts.append(text)
            if is_table or not is_heading(part):
                parts.append(DocumentBlock(place, "\n".join(texts)))
                place, texts = "", []
        if texts:
            parts.append(DocumentBlock(place, "\n".join(texts)))
    except MemlabError:
        raise
    except Exception as fault:  # a damaged file may raise anything inside a parser
        raise MemlabError(f"it is no Word document that can be read ({type(fault).__name__}: {str(fault)[:80]})",
                          fix="open it and save it again as .docx") from fault
    return Document(None, parts)


LOADERS: dict[str, Callable[[bytes], Document]] = {
    ".md": blocks.markdown, ".markdown": blocks.markdown, ".txt": blocks.text,
    ".json": blocks.json_file, ".pdf": pdf, ".docx": docx,
}
"""Ending of a file's name -> its reader."""


def files(folder: Path) -> list[Path]:
    """List the files of a folder and its subfolders by name; hidden files and the questions are left out."""
    inner = sorted((path.relative_to(folder) for path in folder.rglob("*") if path.is_file()), key=Path.as_posix)
    return [folder / path for path in inner
            if path != Path(QUESTIONS) and not any(part.startswith(".") for part in path.parts)]


def read(folder: Path, max_mb: float) -> tuple[dict[str, Document], list[str]]:
    """Return a folder's documents by name (the path below it), and the faults of its files."""
    documents: dict[str, Document] = {}
    faults: list[str] = []
    for path in files(folder):
        name = path.relative_to(folder).as_posix()
        try:
            if name != replace_surrogates(name):
                raise MemlabError("its name is not UTF-8", fix="rename it")
            documents[name] = load(path, max_mb)
        except MemlabError as fault:
            faults.append(f"{sanitise(name)}: {fault}")
    if not documents and not faults:
        faults.append(f"{folder}: there is no document in it; known endings: {', '.join(LOADERS)}")
    return documents, faults


def load(path: Path, max_mb: float) -> Document:
    """Read one file by the ending of its name; raise MemlabError with what is wrong and how to correct it."""
    loader = LOADERS.get(path.suffix.lower())
    if loader is None:
        raise MemlabError(f"its ending '{path.suffix}' is not known", fix=f"make it one of {', '.join(LOADERS)}, or "
                          "move it out of the folder")
    try:
        size = path.stat().st_size
        if size > max_mb * 1e6:
            raise MemlabError(f"it has {size / 1e6:,.1f} MB, the limit is {max_mb:g}",
                              fix="split it, or raise data.max_mb")
        raw = path.read_bytes()
    except OSError as fault:
        raise MemlabError(f"it cannot be read ({fault.strerror or fault})", fix="check its permissions") from fault
    document = docx(raw, int(max_mb * 1e6) * _UNPACKED) if loader is docx and raw else loader(raw) if raw else None
    if document is None or not document.blocks:
        raise MemlabError("it is empty", fix="add text to it, or delete it")
    if max(len(block.text) for block in document.blocks) > MOST_BYTES:
        raise MemlabError(f"one text has more than {MOST_BYTES / 1e6:g} MB, the limit",
                          fix="split it by blank lines, or remove it")
    return document._replace(blocks=[DocumentBlock(*map(replace_surrogates, block)) for block in document.blocks])


def _library(module: str, package: str) -> Any:
    """Import a library of the extra."""
    try:
        return importlib.import_module(module)
    except ImportError as fault:
        raise MemlabError(f"reading it needs {package}",
                          fix="pip install 'memlab[documents]'") from fault
