"""Texts made safe for terminals, notebooks and reports, and numbers formatted for them."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, TypeGuard

_SURROGATE = re.compile("[\ud800-\udfff]")
_BLANKS = re.compile(r"\s+")


def replace_surrogates(text: str, replacement: str = "?") -> str:
    """Replace lone surrogates, which JSON and PDF can contain, so that the text can be sent and stored.

    >>> replace_surrogates("a\\x1b[31m\\ud83d")
    'a\\x1b[31m?'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub(replacement, text)
    return text


def printable_line(text: str) -> str:
    """Return a text in one line, without control characters and lone surrogates.

    Joiners, which shape letters and emoji, stay; other marks that nobody sees stand for no blank.

    >>> printable_line("Ann\\n moved\\x1b to\\ud83d  Ro\\u00adme.")
    'Ann moved to Rome.'
    """
    plain = (c if c.isprintable() or c in _JOINERS else "" if unicodedata.category(c) == "Cf" else " " for c in text)
    return " ".join("".join(plain).split())


_JOINERS = "\u200c\u200d"
_UNSAFE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}  # controls, invisible formats (text direction), surrogates, separators
_KEPT = {*_JOINERS, "\n", "\t"}

EMPTY = "–"
"""Stands where there is no number."""


def visible(char: str) -> str:
    r"""Return a character, or its escape if nobody would see it.

    >>> visible("a"), visible("\x1b")
    ('a', '\\x1b')
    """
    return ascii(char)[1:-1] if unicodedata.category(char) in _UNSAFE else char


def safe_text(text: object) -> str:
    r"""Escape what nobody would see, for all that people read; line breaks, tabs and joiners of letters stay.

    A benchmark's text must not steer a terminal, and an override must not reverse the rest of a line.

    >>> safe_text("a\x1b[31mred\u202e\nb")
    'a\\x1b[31mred\\u202e\nb'
    """
    raw = str(text)
    if raw.isprintable():  # most texts; the loop is slow
        return raw
    return "".join(c if c in _KEPT else visible(c) for c in raw)


def safe_line(text: object, width: int | None = None) -> str:
    r"""Return a text in one line, as ``safe_text`` makes it, cut to ``width`` characters if given.

    >>> safe_line("a\n  b\x07"), safe_line("my  chats")
    ('a b\\x07', 'my  chats')
    >>> safe_line("a long text", width=6)
    'a lon…'
    """
    line = _BLANKS.sub(lambda run: run[0] if set(run[0]) == {" "} else " ", str(text)).strip()
    return safe_text(line if width is None or len(line) <= width else f"{line[:width - 1]}…")


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value is a finite number: not None, not NaN, not true.

    >>> is_number(0), is_number(None), is_number(float("nan")), is_number(True)
    (True, False, False, False)
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def format_number(value: Any, places: int = 3) -> str:
    """Format a rate or score with fixed places, an integer without.

    >>> format_number(0.93617), format_number(12), format_number(None)
    ('0.936', '12', '–')
    """
    if not is_number(value):
        return EMPTY
    return f"{value:,}" if isinstance(value, int) else f"{value:.{places}f}"


def format_signed(value: Any, places: int = 3) -> str:
    """Format a difference with its sign.

    >>> format_signed(0.0312), format_signed(-0.5), format_signed(0.0)
    ('+0.031', '−0.500', '0.000')
    """
    if not is_number(value):
        return EMPTY
    text = f"{abs(value):.{places}f}"
    return text if float(text) == 0 else ("+" if value > 0 else "−") + text


def format_interval(low: Any, high: Any, write: Any = format_number) -> str:
    """Format an interval; "" if an end is missing.

    >>> format_interval(0.9, 0.95)
    '0.900 to 0.950'
    """
    return f"{write(low)} to {write(high)}" if is_number(low) and is_number(high) else ""


def format_p(p: Any) -> str:
    """Format a p-value with three places.

    >>> format_p(0.0304), format_p(1e-7), format_p(None)
    ('0.030', '< 0.001', '–')
    """
    if not is_number(p):
        return EMPTY
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def format_count(value: Any) -> str:
    """Format a mean count, such as tokens or K.

    >>> format_count(1234.5), format_count(9.96), format_count(None)
    ('1,234', '10.0', '–')
    """
    if not is_number(value):
        return EMPTY
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}"


def format_duration(seconds: Any) -> str:
    """Format a time in seconds.

    >>> format_duration(0.04), format_duration(12.34), format_duration(125)
    ('0.04 s', '12.3 s', '2 min 05 s')
    """
    if not is_number(seconds):
        return EMPTY
    if seconds >= 60:
        return f"{int(seconds) // 60:,} min {int(seconds) % 60:02d} s"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds:.2f} s"


def plural(n: int, one: str, many: str = "") -> str:
    """Return a number with its noun.

    >>> plural(1, "session"), plural(2005, "turn"), plural(0, "corpus", "corpora")
    ('1 session', '2,005 turns', '0 corpora')
    """
    return f"{n:,} {one if n == 1 else many or f'{one}s'}"


def shorten(text: str, width: int) -> str:
    """Return a text of at most ``width`` characters, cut after a word and marked where it was longer.

    >>> shorten("The launch moved to May", 15), shorten("The launch", 10), shorten("a" * 9, 5)
    ('The launch…', 'The launch', 'aaaa…')
    """
    if len(text) <= width:
        return text
    head = text[:width - 1] if text[width - 1] == " " else text[:width - 1].rpartition(" ")[0] or text[:width - 1]
    return f"{head.rstrip(' ,;:')}…"


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
    return escape(safe_line(text))
