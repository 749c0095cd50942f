"""The terminal: text without keys, and without control characters or those that the terminal cannot encode.

What a benchmark, a file or a server says must neither colour, clear nor title a terminal, nor reverse a line, nor end a
command whose output can hold no such characters (``LC_ALL=C``, ``PYTHONIOENCODING=ascii``). Commands import ``print``
from here and ``Console`` from ``memlab.support.console``; tests/test_structure.py holds them to it. Arguments of a
command line pass ``as_flags``.
"""

from __future__ import annotations

import builtins
import logging
import sys
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import TextIO

from memlab.support.errors import Faults
from memlab.support.pipe import end_output
from memlab.support.redaction import redact
from memlab.support.text.display import safe_text

HELP = ("-h", "--help")
"""Flags that print help."""


@cache
def log_once(text: str) -> None:
    """Log a remark, once per process."""
    logging.getLogger("memlab").warning(text)


def as_flags(words: Iterable[str], flags: Mapping[str, str]) -> list[str]:
    """Replace settings by the flags of the same meaning; a key that ends in a dot matches all keys below it.

    >>> as_flags(["mine.jsonl", "data=locomo", "data.path=a.json"], {"data": "--data", "data.path": "--path"})
    ['mine.jsonl', '--data=locomo', '--path=a.json']
    >>> as_flags(["chat.url=http://127.0.0.1:8000/v1"], {"chat.": "--chat."})
    ['--chat.url=http://127.0.0.1:8000/v1']

    A setting that is given twice ends the process as a parser would, with status 2.
    """
    words = list(words)
    try:
        own_words(words, {word.partition("=")[0] for word in words if _flag(word, flags) != word})
    except Faults as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
    return [_flag(word, flags) for word in words]


def _flag(word: str, flags: Mapping[str, str]) -> str:
    key, equals, value = word.partition("=")
    head, dot, field = key.partition(".")
    for name, rest in ((key, ""), (f"{head}{dot}", field)):
        if equals and name in flags:
            return f"{flags[name]}{rest}={value}"
    return word


def own_words(words: Sequence[str], names: Collection[str]) -> tuple[dict[str, str], list[str]]:
    """Split a command line into the words NAME=VALUE of these names, as a mapping, and all others.

    Raises Faults where a name is given twice.

    >>> own_words(["memory=ann", "system=best"], ["memory", "timezone"])
    ({'memory': 'ann'}, ['system=best'])
    """
    own = [word for word in words if "=" in word and word.partition("=")[0] in names]
    counts = Counter(word.partition("=")[0] for word in own)
    if twice := [f"{name}: is given {count} times; give it once" for name, count in counts.items() if count > 1]:
        raise Faults(twice)
    return dict(word.split("=", 1) for word in own), [word for word in words if word not in own]


def printable(text: str) -> str:
    r"""Return a text as a terminal shows it: keys as ``***``, invisible characters escaped, line breaks kept.

    >>> printable("a\x1b]0;title\x07\nhttp://me:pw@host")
    'a\\x1b]0;title\\x07\nhttp://***@host'
    """
    return safe_text(redact(text, prose=True))


def encodable(text: str, encoding: str | None) -> str:
    r"""Return a text with the characters that an encoding lacks escaped; None is that of a stream of text in memory.

    >>> encodable("Zoë – 東京", "latin-1")
    'Zoë \\u2013 \\u6771\\u4eac'
    """
    if encoding is None or text.isascii():
        return text
    return text.encode(encoding, "backslashreplace").decode(encoding)


def print(*values: object, sep: str = " ", end: str = "\n", file: TextIO | None = None, flush: bool = False,
          secret: bool = False) -> None:
    """Print as Python does, but ``printable`` text; a ``secret`` that is asked for keeps its keys.

    Ends the process quietly where nobody reads the output any more.
    """
    text = sep.join(map(str, values))
    out = file or sys.stdout
    safe = safe_text(text) if secret else printable(text)
    try:
        builtins.print(encodable(safe, getattr(out, "encoding", None)), end=end, file=out, flush=flush)
    except BrokenPipeError:
        end_output(out)


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def clean_logs() -> None:
    """Send Python's warnings and memlab's log to standard error as ``printable`` returns them."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter("%(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    warnings.formatwarning = _format_warning


def _format_warning(message: Warning | str, category: type[Warning], filename: str, lineno: int,
                    line: str | None = None) -> str:
    del line
    return printable(f"{filename}:{lineno}: {category.__name__}: {message}") + "\n"
