"""Settings of a command line (``data=locomo``) for commands that take them as flags (``--data locomo``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def as_flags(words: Iterable[str], flags: Mapping[str, str]) -> list[str]:
    """Replace settings by the flags of the same meaning; a key that ends in a dot stands for all keys below it.

    >>> as_flags(["mine.jsonl", "data=locomo", "data.path=a.json"], {"data": "--data", "data.path": "--path"})
    ['mine.jsonl', '--data=locomo', '--path=a.json']
    >>> as_flags(["chat.url=http://127.0.0.1:8000/v1"], {"chat.": "--chat."})
    ['--chat.url=http://127.0.0.1:8000/v1']
    """
    return [_flag(word, flags) for word in words]


def _flag(word: str, flags: Mapping[str, str]) -> str:
    key, equals, value = word.partition("=")
    if equals and key in flags:
        return f"{flags[key]}={value}"
    head, dot, field = key.partition(".")
    if equals and dot and f"{head}." in flags:
        return f"{flags[f'{head}.']}{field}={value}"
    return word
