"""Quoting of the commands that memlab prints, for Hydra's grammar and then for the shell."""

from __future__ import annotations

import re
import shlex
import sys

from memlab.support.terminal import encodable
from memlab.support.text.display import safe_line

_PLAIN = re.compile(r"(?!(?:true|false|null|nan|inf)\Z)(?:\.{0,2}/|[a-z_])[\w./:@-]*", re.ASCII | re.IGNORECASE)
_BEFORE_MARK = re.compile(r'(?<!\\)(\\*)("|\$\{|\Z)')


def setting(key: str, value: str) -> str:
    r"""Return ``key=value`` as a shell takes it, so that memlab reads the value as it is.

    OmegaConf has no way to write the value ``???``: to it that is a setting without a value.

    >>> print(setting("data.path", "chats-chatgpt"), setting("data.path", "my chats"))
    data.path=chats-chatgpt 'data.path="my chats"'
    >>> print(setting("data.path", "2024"), setting("data.path", "${x}"))
    'data.path="2024"' 'data.path="\${x}"'
    """
    if _PLAIN.fullmatch(value):
        return word(f"{key}={value}")
    escaped = _BEFORE_MARK.sub(lambda at: 2 * at[1] + ("\\" + at[2] if at[2] else ""), value)
    return word(f'{key}="{escaped}"')


def data_path(folder: str) -> str:
    """Return ``data.path=FOLDER`` as a shell takes it.

    A first ``~`` would be a home folder, and a first ``?`` no value.

    >>> print(data_path("my chats"), data_path("~me"))
    'data.path="my chats"' 'data.path="./~me"'
    """
    return setting("data.path", f"./{folder}" if folder.startswith(("~", "?")) else folder)


def word(text: str) -> str:
    r"""Return a word for the shell; what a terminal would not show as it is stands there as its bytes (bash, zsh).

    >>> print(word("my chats"), word("a\nb"), word("it's\x1b"))
    'my chats' $'a\x0ab' $'it\'s\x1b'
    """
    shown = encodable(safe_line(text), getattr(sys.stdout, "encoding", None))
    if shown == text:
        return shlex.quote(text)
    return f"$'{''.join(map(_escape, text))}'"


def _escape(letter: str) -> str:
    if letter in "\\'":
        return f"\\{letter}"
    if letter.isascii() and letter.isprintable():
        return letter
    return "".join(f"\\x{byte:02x}" for byte in letter.encode(errors="surrogateescape"))
