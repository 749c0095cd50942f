"""Parts of Word documents, read in time and memory that grow with their size: limits, headings and tables."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

from memlab.errors import MemlabError
from memlab.runtime.json_limits import MOST_BYTES
from memlab.runtime.unpacking import most_unpacked

MOST_ELEMENTS = 500_000
"""XML elements of all parts together: each takes some 400 bytes and 10 microseconds; a page of text has about 100."""

_PIECE = 1 << 20


def check(raw: bytes, max_bytes: int) -> None:
    """Raise MemlabError if a document unpacks to too many bytes or elements; only XML is unpacked, piece by piece."""
    most = min(max_bytes, most_unpacked(len(raw)))
    with zipfile.ZipFile(io.BytesIO(raw)) as packed:
        size = sum(entry.file_size for entry in packed.infolist())
        if size > most:
            raise MemlabError(f"it unpacks to {size / 1e6:,.0f} MB, the limit is {most / 1e6:,.0f}",
                              fix="take the pictures out, or split it")
        elements = 0
        for entry in packed.infolist():
            if not entry.filename.lower().endswith((".xml", ".rels")):
                continue
            with packed.open(entry) as stream:
                while piece := stream.read(_PIECE):
                    elements += piece.count(b"<") - piece.count(b"</")
                    if elements > MOST_ELEMENTS:
                        raise MemlabError(f"it has more than {MOST_ELEMENTS:,} XML elements (paragraphs, runs, cells), "
                                          "the limit", fix="split it")


def headings(styles: Any, paragraph_type: Any) -> Callable[[Any], bool]:
    """Return a function that tells whether a paragraph is a heading by its style's name.

    The styles are read once: python-docx searches all of them for each paragraph.
    """
    default = styles.default(paragraph_type)
    default_name = "" if default is None else default.name or ""
    names: dict[str, str] = {}
    for style in styles:
        names.setdefault(style.style_id, (style.name or "") if style.type == paragraph_type else default_name)
    return lambda paragraph: names.get(paragraph._p.style, default_name).startswith("Heading")


def table(whole: Any, cell_class: Callable[[Any, Any], Any]) -> str:
    """Format a table, one row per line; a merged cell stands once in each of its rows.

    Spans of columns are added up, never unfolded. Raises MemlabError if the text is over the limit.
    """
    rows: list[str] = []
    above: dict[int, str] = {}
    size = 0
    for row in whole._tbl.tr_lst:
        column, here = row.grid_before, {}
        for cell in row.tc_lst:
            here[column] = (above.get(column, "") if cell.vMerge == "continue"
                            else cell_class(cell, whole).text.strip())
            size += len(here[column]) + 3
            column += cell.grid_span
            if size > MOST_BYTES:
                raise MemlabError(f"a table has more than {MOST_BYTES / 1e6:g} MB of text, merged cells counted in "
                                  "each row, the limit", fix="split it")
        above = here
        rows.append(" | ".join(here.values()).strip())
    return "\n".join(row for row in rows if row.strip(" |"))
