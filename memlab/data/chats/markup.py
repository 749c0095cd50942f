"""HTML as plain text, for exports whose answers are marked up.

Paragraphs and lists become lines, code keeps its blanks between backticks, and a link its address in parentheses.
Nothing recurses, so nesting costs no stack; indents of lists end at ``MOST_INDENTS`` levels. html.parser searches to
the end of the text for each tag that is not closed, and refuses numbers of thousands of digits: what is not a whole
tag, or such a number, is escaped before, so that the time is linear in the text.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

from memlab.data.chats.content import last_step, placeholder

MOST_INDENTS = 8
"""Levels of lists that are indented; deeper ones are shown at this one."""

_VALUE = r"""\s*+=\s*+(?:"[^"<>]*+"|'[^'<>]*+'|[^\s"'<>]++)"""
_TAG = rf"""/?+[A-Za-z][A-Za-z0-9]*+(?:\s++[^\s"'<>/=]++(?:{_VALUE})?+)*+\s*+/?+>"""
_NOT_MARKUP = re.compile(rf"<(?!{_TAG})|&(?=#[xX]?[0-9a-fA-F]{{8}})")
_ESCAPED = {"<": "&lt;", "&": "&amp;"}
_HIDDEN = {"script", "style"}
_PARAGRAPHS = {"p", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "table", "blockquote", "hr"}
_LINES = {"br", "div", "tr", "ul", "ol", "li", "section", "article", "dt", "dd"}


def to_text(markup: str) -> str:
    """Return the text that a browser shows, with lists, code, links, tables and pictures readable.

    >>> print(to_text('<p>Use <b>this</b>:</p><ul><li>a &lt; b</li><li><a href="https://x.org/">docs</a></li></ul>'))
    Use this:
    <BLANKLINE>
    - a < b
    - docs (https://x.org/)
    >>> print(to_text("<pre><code>if x:\\n    y</code></pre><p>Run <code>y</code>.</p>"))
    ```
    if x:
        y
    ```
    <BLANKLINE>
    Run `y`.
    """
    writer = _Writer()
    writer.feed(_NOT_MARKUP.sub(lambda match: _ESCAPED[match[0]], markup))
    writer.close()
    return "".join(writer.pieces).strip()


class _Writer(HTMLParser):
    """The pieces of text; line feeds wait until something follows them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._feeds = self._hidden = self._pre = self._cells = 0
        self._marked = self._in_cell = False  # marked: a list's mark stands before the next text
        self._lists: list[int] = []  # the number of the next entry; 0 for bullets
        self._link: tuple[str, int] | None = None  # address, and the piece where its text begins

    def set_cdata_mode(self, elem: str, *, escapable: bool = False) -> None:
        """Read what follows a <script> as markup, so that one that is open ends nowhere but where tags do."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self._hidden += tag in _HIDDEN
        self._block(tag)
        if tag in ("ul", "ol"):
            self._lists.append(int(tag == "ol"))
        elif tag == "li":
            self._mark()
        elif tag == "pre":
            self._write("```\n")
            self._pre += 1
        elif tag == "code" and not self._pre:
            self._write("`")
        elif tag == "a":
            self._link = (values.get("href") or "", len(self.pieces))
        elif tag == "img":
            self._write(placeholder("image", values.get("alt") or last_step(values.get("src") or "")))
        elif tag == "tr":
            self._cells = 0
        elif tag in ("td", "th"):
            self._write(" | " if self._cells else "")
            self._cells += 1
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self._marked &= tag not in ("li", "ul", "ol")
        if tag in _HIDDEN:
            self._hidden = max(self._hidden - 1, 0)
        elif tag in ("ul", "ol") and self._lists:
            self._lists.pop()
        elif tag == "pre" and self._pre:
            self._pre -= 1
            self._write("```" if "".join(self.pieces[-1:]).endswith("\n") else "\n```")
        elif tag == "code" and not self._pre:
            self._write("`")
        elif tag == "a" and self._link:
            address, start = self._link
            self._link = None
            if address.startswith(("http://", "https://")) and address not in "".join(self.pieces[start:]):
                self._write(f" ({address})")
        self._block(tag)

    def handle_data(self, data: str) -> None:
        self._write(data if self._pre else re.sub(r"\s+", " ", data))

    def _block(self, tag: str) -> None:
        """Begin or end a block, which stands on lines of its own; in a table's cell a blank stands for it."""
        self._in_cell &= tag not in ("tr", "table")
        outer = tag in ("ul", "ol") and not self._lists
        feeds = 2 if tag in _PARAGRAPHS or outer else int(tag in _LINES)
        if self._in_cell:
            self._write(" " if feeds else "")
        elif feeds and not self._marked and not self._pre:
            self._feeds = max(self._feeds, 1 if self._lists else feeds)

    def _mark(self) -> None:
        """Begin an entry of a list."""
        number = self._lists[-1] if self._lists else 0
        indent = "  " * min(max(len(self._lists) - 1, 0), MOST_INDENTS)
        self._feeds = self._feeds or 1
        self._write(f"{indent}{number}. " if number else f"{indent}- ", as_it_is=True)
        self._marked = True
        if number:
            self._lists[-1] += 1

    def _write(self, text: str, as_it_is: bool = False) -> None:
        last = self.pieces[-1] if self.pieces else " "
        if not self._pre and not as_it_is and (self._feeds or last.endswith((" ", "\n"))):
            text = text.lstrip(" ")
        if self._hidden or not text:
            return
        if self._feeds and self.pieces:
            self.pieces[-1:] = [last.rstrip(" "), "\n" * self._feeds]
        self.pieces.append(text)
        self._feeds, self._marked = 0, False
