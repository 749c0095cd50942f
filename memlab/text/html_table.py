"""Small HTML tables for notebooks; every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from memlab.text.display import one_line


def html_table(columns: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """Return a table of texts; markup in them is shown as it is written.

    >>> html_table(["name"], [["<b>"]], "1 row")
    '<table><caption>1 row</caption><tr><th>name</th></tr><tr><td>&lt;b&gt;</td></tr></table>'
    """
    head = "".join(f"<th>{_safe(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{_safe(cell)}</td>' for cell in row)}</tr>" for row in rows)
    title = f"<caption>{_safe(caption)}</caption>" if caption else ""
    return f"<table>{title}<tr>{head}</tr>{body}</table>"


def paragraphs(texts: Iterable[str]) -> str:
    """Return one paragraph per text.

    >>> paragraphs(["a < b"])
    '<p>a &lt; b</p>'
    """
    return "".join(f"<p>{_safe(text)}</p>" for text in texts)


def _safe(text: object) -> str:
    return escape(one_line(text))
