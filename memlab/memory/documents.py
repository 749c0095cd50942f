"""A document as a session of a live memory, whose turns are its chunks.

Files are read as by ``data=documents``, with the same limits: a chunk is a paragraph, a table, an entry of JSON, or a
page of a PDF without blank lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

from memlab.data.documents import blocks, office
from memlab.data.documents.blocks import Document
from memlab.data.documents.dataset import LOADERS, load, parse
from memlab.data.fields import check_fields
from memlab.memory.sessions import Session, Turn
from memlab.support.errors import MemlabError
from memlab.support.text.display import safe_line

KIND = "document"
"""Kind of the session of a document."""


def session_of_document(path: Path | None, text: str | None, said_on: datetime | date | str | None = None,
                        name: str | None = None, *, max_mb: float = 20.0, **fields: Any) -> Session:
    """Return the session of a file, or of a text that is given in its place.

    Its name and source are the file's name, its kind is "document", and its date is the one that the file states,
    unless they are given. A text needs a name, whose ending says how it is read: .md, .json, else as plain text.

    >>> session = session_of_document(None, "# Plan\\n\\nWe ship in May.\\n\\nOn a Monday.", name="plan.md")
    >>> [(turn.text, turn.offset) for turn in session.turns]
    [('# Plan\\n\\nWe ship in May.', 0), ('On a Monday.', 25)]
    """
    check_fields(fields)
    if (path is None) == (text is None):
        raise MemlabError("a file or a text is expected, " + ("both are given" if path else "none is given"),
                          where="add_document", fix='write add_document("plan.md") or add_document(text=..., name=...)')
    own = name if path is None else path.name
    if not own:
        raise MemlabError("a text has no name", where="add_document", fix='give one: name="plan.md" (read as Markdown)')
    try:
        document = _document(own, text or "", max_mb) if path is None else _file(path, max_mb)
        said_on = document.said_on if said_on is None else said_on
    except MemlabError as fault:
        where = safe_line(path or own) + (f", {fault.where}" if fault.where else "")
        raise MemlabError(fault.what, where=where, fix=fault.fix) from fault
    turns = [Turn("user", block.text, own, block.offset, block.page) for block in document.blocks]
    given: Mapping[str, Any] = {"source": own, "kind": KIND, **{k: v for k, v in fields.items() if v is not None}}
    return Session(said_on, turns, name or own, **given)


def _file(path: Path, max_mb: float) -> Document:
    if not path.is_file():
        raise MemlabError("a folder is there" if path.is_dir() else "there is no such file", fix="give a file")
    return load(path, max_mb)


def _document(name: str, text: str, max_mb: float) -> Document:
    loader = LOADERS.get(Path(name).suffix.lower(), blocks.text)
    raw = text.encode("utf-8", "replace")
    if len(raw) > max_mb * 1e6:
        raise MemlabError(f"it has {len(raw) / 1e6:,.1f} MB, the limit is {max_mb:g}", fix="split it, or raise max_mb")
    return parse(raw, blocks.text if loader in (office.pdf, office.docx) else loader)
