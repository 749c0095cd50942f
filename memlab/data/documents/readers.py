"""Files of a folder to documents: md, txt and json by this project, pdf and docx by the libraries of an extra.

Every fault names its file and says how to mend it; all of them are gathered.
"""

from __future__ import annotations

import importlib
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memlab.data.documents import blocks
from memlab.data.documents.blocks import Document, DocumentBlock, paragraphs
from memlab.errors import MemlabError
from memlab.text.display import sanitise
from memlab.text.unicode import replace_surrogates

QUESTIONS = "questions.jsonl"
_UNPACKED = 20  # times its limit that a docx may unpack to: text packs to a tenth, a bomb to a thousandth


def pdf(raw: bytes) -> Document:
    """Read a PDF: a block is what stands between blank lines of a page, its place "page 3, 120".

    Most PDFs hold no blank lines, so that a page is a block.
    """
    pypdf = _library("pypdf", "pypdf")
    try:
        reader = pypdf.PdfReader(io.BytesIO(raw))
        if reader.is_encrypted and not reader.decrypt(""):
            raise MemlabError("a password protects it", fix="save it without protection")
        pages = [page.extract_text() for page in reader.pages]
    except pypdf.errors.DependencyError as fault:
        raise MemlabError("it is encrypted", fix="save it without protection") from fault
    except MemlabError:
        raise
    except Exception as fault:  # a damaged file may raise anything inside a parser
        raise MemlabError(f"it is no PDF that can be read ({type(fault).__name__}: {str(fault)[:80]})",
                          fix="open it and save it again") from fault
    found = [DocumentBlock(f"page {number}, {at}", block) for number, page in enumerate(pages, start=1)
             for at, block in paragraphs(page)]
    if not found:
        raise MemlabError("there is no text in it; scanned pages are pictures", fix="let an OCR program add the text")
    return Document(None, found)


def docx(raw: bytes, most: int = 1 << 30) -> Document:
    """Read a Word document: a block is a paragraph or a table (one row per line); a heading begins the block behind it.

    ``most``: bytes that it may unpack to. Its place counts paragraphs and tables from 1. Page headers, footnotes and
    text boxes are left out.
    """
    library = _library("docx", "python-docx")
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as packed:
            size = sum(entry.file_size for entry in packed.infolist())
        if size > most:
            raise MemlabError(f"it unpacks to {size / 1e6:,.0f} MB", fix="take the pictures out, or raise data.max_mb")
        body = library.Document(io.BytesIO(raw)).iter_inner_content()
        found: list[DocumentBlock] = []
        headings: list[tuple[int, str]] = []
        for number, part in enumerate(body, start=1):
            if hasattr(part, "rows"):
                said, heading = _table(part), False
            else:
                said, heading = part.text.strip(), bool(part.style and part.style.name.startswith("Heading"))
            headings += [(number, said)] if said else []
            if said and not heading:
                found.append(_together(headings))
                headings = []
        found += [_together(headings)] if headings else []
    except MemlabError:
        raise
    except Exception as fault:  # a damaged file may raise anything inside a parser
        raise MemlabError(f"it is no Word document that can be read ({type(fault).__name__}: {str(fault)[:80]})",
                          fix="open it and save it again as .docx") from fault
    return Document(None, found)


LOADERS: dict[str, Callable[[bytes], Document]] = {
    ".md": blocks.markdown, ".markdown": blocks.markdown, ".txt": blocks.text,
    ".json": blocks.json_file, ".pdf": pdf, ".docx": docx,
}
"""Ending of a file's name -> what reads it."""


def files(folder: Path) -> list[Path]:
    """List a folder's files, those of folders below included, by name; hidden ones and questions are left out."""
    found = []
    for path in folder.rglob("*"):
        inner = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in inner.parts) and inner != Path(QUESTIONS):
            found.append(path)
    return sorted(found, key=lambda path: path.relative_to(folder).as_posix())


def read(folder: Path, max_mb: float) -> tuple[dict[str, Document], list[str]]:
    """Return a folder's documents by name (a path below it), and all that is wrong with its files."""
    documents: dict[str, Document] = {}
    faults: list[str] = []
    for path in files(folder):
        name = path.relative_to(folder).as_posix()
        try:
            documents[_spoken(name)] = load(path, max_mb)
        except MemlabError as fault:
            faults.append(f"{sanitise(name)}: {fault}")
    if not documents and not faults:
        faults.append(f"{folder}: there is no document in it; known endings: {', '.join(LOADERS)}")
    return documents, faults


def load(path: Path, max_mb: float) -> Document:
    """Read one file by the ending of its name; raises MemlabError saying what is wrong and how to mend it."""
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
        raise MemlabError("it is empty", fix="write something into it, or delete it")
    return document._replace(blocks=[DocumentBlock(*map(replace_surrogates, block)) for block in document.blocks])


def _library(module: str, package: str) -> Any:
    """Import a library of the extra when a file needs it."""
    try:
        return importlib.import_module(module)
    except ImportError as fault:
        raise MemlabError(f"reading it needs {package}",
                          fix="pip install -c constraints.txt -e '.[documents]' in memlab's folder") from fault


def _table(table: Any) -> str:
    """Write a table, one row per line; python-docx gives a merged cell once a column, which is said once."""
    rows = []
    for row in table.rows:
        cells = {id(cell._tc): cell.text.strip() for cell in row.cells}
        rows.append(" | ".join(cells.values()).strip())
    return "\n".join(row for row in rows if row.strip(" |"))


def _together(parts: list[tuple[int, str]]) -> DocumentBlock:
    return DocumentBlock(str(parts[0][0]), "\n".join(said for _, said in parts))


def _spoken(name: str) -> str:
    if name != replace_surrogates(name):
        raise MemlabError("its name is not UTF-8", fix="rename it")
    return name
