"""Texts of the pages of a PDF, and the limit of what their contents unpack to."""

from __future__ import annotations

from typing import Any

from memlab.errors import MemlabError

TIMES = 20
"""Times the size of the file that its pages may unpack to: text packs to a third, a bomb to a thousandth."""

AT_LEAST = 10_000_000
"""Bytes that the pages of any file may unpack to."""


def texts(reader: Any, size: int) -> list[str]:
    """Return the text of each page of a ``pypdf.PdfReader``, of a file of ``size`` bytes.

    Raises MemlabError, before any text is read, if the contents of the pages unpack to more than the limit. Contents
    that several pages share count for each, since they are read for each.
    """
    most = max(AT_LEAST, TIMES * size)
    unpacked = 0
    for page in reader.pages:
        contents = page.get_contents()
        unpacked += 0 if contents is None else len(contents.get_data())
        if unpacked > most:
            raise MemlabError(f"its pages unpack to more than {most / 1e6:,.0f} MB, the limit",
                              fix="print it to a new PDF, or save its text as .txt")
    return [page.extract_text() for page in reader.pages]
