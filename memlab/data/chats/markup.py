"""HTML as plain text, for exports whose answers are marked up.

Paragraphs and lists become lines, code keeps its blanks between backticks, and a link its address in parentheses.
Nothing recurses, so nesting costs no stack; indents of lists end at ``MOST_INDENTS`` levels. html.parser searches to
the end of the text for each tag that is not closed, and refuses numbers of thousands of digits: what is not a whole
tag, or such a number, is escaped before, so that the time is linear in the text.

Marks stand for breaks until all is read, since what is shown of several breaks in a row is the widest: a line, a
paragraph, the cell or the row of a table, and what a list's entry begins with (``_ROW``, ``_ENTRY``), after which no
break is shown.
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
_LINE, _PARAGRAPH, _CELL, _ROW, _ENTRY, _BLANK = "\x01\x02\x03\x04\x05\x06"
_MARKS = dict.fromkeys(map(ord, (_LINE, _PARAGRAPH, _CELL, _ROW, _ENTRY, _BLANK)))
_BREAKS = {**dict.fromkeys(("p", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "table", "blockquote", "hr"), _PARAGRAPH),
           **dict.fromkeys(("br", "div", "ul", "ol", "li", "section", "article", "dt", "dd"), _LINE)}
_SPACE = f"[ {_LINE}{_PARAGRAPH}]"
_HIDDEN = {"script", "style"}
_SHOWN = (  # marks with the blanks and breaks around them, and what is shown of them
    (re.compile(f"{_ENTRY}{_SPACE}*+"), lambda _: " "), (re.compile(f"{_ROW}(?:{_SPACE}|{_CELL})*+"), lambda _: _LINE),
    (re.compile(f"(?:(?<!{_SPACE}){_SPACE}++)?{_CELL}{_SPACE}*+"), lambda _: " | "),
    (re.compile(f"(?<!{_SPACE}){_SPACE}++"), lambda match: (
        "\n\n" if _PARAGRAPH in match[0] else "\n" if _LINE in match[0] else " ")))


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
    writer.feed(_NOT_MARKUP.sub(lambda match: _ESCAPED[match[0]], markup.translate(_MARKS)))
    writer.close()
    text = "".join(writer.pieces)
    for pattern, shown in _SHOWN:
        text = pattern.sub(shown, text)
    return text.replace(_BLANK, " ").strip()


class _Writer(HTMLParser):
    """The pieces of text, with marks for breaks."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._hidden = self._pre = 0
        self._lists: list[int] = []  # the number of the next entry; 0 for bullets
        self._link: tuple[str, int] | None = None  # address, and the piece where its text begins

    def set_cdata_mode(self, elem: str, *, escapable: bool = False) -> None:
        """Read what follows a <script> as markup, so that one that is open ends nowhere but where tags do."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self._hidden += tag in _HIDDEN
        self._break(tag)
        if tag in ("ul", "ol"):
            self._lists.append(int(tag == "ol"))
        elif tag == "li":
            number = self._lists[-1] if self._lists else 0
            indent = 2 * _BLANK * min(max(len(self._lists) - 1, 0), MOST_INDENTS)
            self._write(f"{_ROW}{indent}{number}.{_ENTRY}" if number else f"{_ROW}{indent}-{_ENTRY}")
            self._lists[-1:] = [number + (number > 0)] * bool(self._lists)
        elif tag == "pre":
            self._write("```\n")
            self._pre += 1
        elif tag == "a":
            self._link = (values.get("href") or "", len(self.pieces))
        elif tag == "img":
            self._write(placeholder("image", values.get("alt") or last_step(values.get("src") or "")))
        else:
            self._write({"tr": _ROW, "td": _CELL, "th": _CELL, "code": "`" * (not self._pre)}.get(tag, ""))

    def handle_endtag(self, tag: str) -> None:
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
        self._break(tag)

    def handle_data(self, data: str) -> None:
        self._write(data.replace(" ", _BLANK) if self._pre else re.sub(r"\s+", " ", data))

    def _break(self, tag: str) -> None:
        """Mark that a block begins or ends; in a list it is a line, and the list itself is a paragraph."""
        mark = _BREAKS.get(tag, "") if not self._pre else ""
        self._write(_LINE if mark and self._lists else _PARAGRAPH if tag in ("ul", "ol") else mark)

    def _write(self, text: str) -> None:
        self.pieces += [text] * (bool(text) and not self._hidden)
