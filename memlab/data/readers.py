"""Readers of benchmark files: text, and plain, .gz or .xz JSON lists record by record; errors name the place."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import lzma
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, TextIO

import ijson

from memlab.data.chats.refusal import export_at, instead
from memlab.support.errors import MemlabError
from memlab.support.files import open_plain

FORMATS = {
    "LoCoMo": ("locomo", {"sample_id", "conversation", "qa"}),
    "LongMemEval": ("longmemeval_s", {"question_id", "haystack_sessions", "answer_session_ids"}),
}
"""Benchmark -> (a data option that reads it, the keys by which its records are recognised)."""

_OPENERS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}
_PIECE = 1 << 18  # bytes that are parsed at a time
_KINDS = {str: "text", list: "a list", dict: "an object", int: "a whole number", float: "a number",
          bool: "true or false", type(None): "null"}


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading; .gz and .xz are unpacked."""
    opener: Callable[[Path], IO[bytes]] = _OPENERS.get(path.suffix, open_plain)
    return opener(path)


@contextmanager
def open_text(path: Path, newline: str | None = None) -> Iterator[TextIO]:
    """Open a file of UTF-8 text for a block; raise MemlabError for what cannot be read there, or is no CSV."""
    try:
        with io.TextIOWrapper(open_plain(path), "utf-8-sig", newline=newline) as stream:
            yield stream
    except (OSError, UnicodeDecodeError, csv.Error) as fault:
        raise MemlabError(f"the file cannot be read ({fault})", where=str(path)) from fault


def _values(stream: IO[bytes], prefix: str) -> Iterator[Any]:
    """Yield the values below ``prefix`` of JSON."""
    yield from ijson.items(stream, prefix, use_float=True, buf_size=_PIECE)


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON list one by one; only one is in memory at a time.

    Raises MemlabError naming the file and the record where it is unreadable, cut off or not such a list.
    """
    try:
        yield from _records(path)
    except MemlabError as fault:
        raise instead(path, fault) from fault


def _records(path: Path) -> Iterator[dict[str, Any]]:
    count = 0
    with _errors_at(lambda: f"{path}, record {count}"), open_bytes(path) as stream:
        for record in _values(stream, "item"):
            if type(record) is not dict:
                raise MemlabError(f"expected an object, got {_KINDS.get(type(record), 'something else')}",
                                  where=f"{path}, record {count}", fix="give the official file")
            if count == 0 and detect(record) is None and (export := export_at(path)):
                raise export
            yield record
            count += 1
    if count == 0:
        raise MemlabError("there is no record; expected a JSON list of objects", where=str(path),
                          fix="give the official file")


def whole(path: Path, kind: type) -> Any:
    """Return the one value of a JSON file, of type ``kind``; raise MemlabError naming the file where it is not."""
    try:
        with _errors_at(lambda: str(path)), open_bytes(path) as stream:
            value = next(_values(stream, ""))
        if type(value) is not kind:
            got = _KINDS.get(type(value), "something else")
            raise MemlabError(f"expected {_KINDS[kind]}, got {got}", where=str(path))
    except MemlabError as fault:
        raise instead(path, fault) from fault
    return value


@contextmanager
def _errors_at(place: Callable[[], str]) -> Iterator[None]:
    """Raise what a reader of JSON raises in the block as MemlabError that names the place."""
    try:
        yield
    except ijson.IncompleteJSONError as fault:
        if "invalid bytes in UTF8" in _first_line(fault):
            raise MemlabError("this is not UTF-8 text", where=place(), fix="save the file as UTF-8, for example by "
                              "iconv -f cp1252 -t utf-8 FILE > NEW") from fault
        raise MemlabError(f"the JSON ends too early or is damaged ({_first_line(fault)})", where=place(),
                          fix="fetch or copy the file again") from fault
    except (ijson.JSONError, UnicodeDecodeError) as fault:
        raise MemlabError(f"this is not JSON ({_first_line(fault)})", where=place(),
                          fix="give the official file") from fault
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as fault:
        raise MemlabError(f"the file cannot be read ({_first_line(fault)})", where=place(),
                          fix="check its permissions and that the copy is whole") from fault


def _first_line(fault: BaseException) -> str:
    text = fault.args[0].decode(errors="replace") if fault.args and isinstance(fault.args[0], bytes) else str(fault)
    return (text.strip().splitlines() or [type(fault).__name__])[0]


def detect(record: dict[str, Any]) -> str | None:
    """Return the name of the benchmark that a record is from, or None."""
    return next((name for name, (_, keys) in FORMATS.items() if keys <= record.keys()), None)


def expect_format(record: dict[str, Any], benchmark: str, where: str) -> None:
    """Raise MemlabError if a record is from another benchmark."""
    detected = detect(record)
    if detected is not None and detected != benchmark:
        raise MemlabError(f"this is a {detected} record, expected {benchmark}", where=where,
                          fix=f"read the file with data={FORMATS[detected][0]}")


def need(holder: object, key: str, kinds: type | tuple[type, ...], where: str) -> Any:
    """Return ``holder[key]`` if its type is one of ``kinds``; raise MemlabError saying what was expected.

    >>> need({"text": 3}, "text", str, "f.json, record 0")
    Traceback (most recent call last):
    ...
    memlab.support.errors.MemlabError: f.json, record 0, field text: expected text, got a whole number
    """
    expected = kinds if isinstance(kinds, tuple) else (kinds,)
    if type(holder) is not dict:
        raise MemlabError(f"expected an object, got {_KINDS.get(type(holder), 'something else')}", where=where)
    value = holder.get(key, need)
    if type(value) in expected:
        return value
    names = " or ".join(_KINDS[k] for k in expected)
    if value is need:
        fields = ", ".join(list(holder)[:12]) or "none"
        raise MemlabError(f"is missing, expected {names} (fields here: {fields})", where=f"{where}, field {key}")
    raise MemlabError(f"expected {names}, got {_KINDS.get(type(value), 'something else')}",
                      where=f"{where}, field {key}")


def choice(holder: object, key: str, among: Collection[str], where: str) -> str:
    """Return ``holder[key]``, a text among these; raise MemlabError that names them.

    >>> choice({"role": "tool"}, "role", ("user", "assistant"), "f.json, record 0")
    Traceback (most recent call last):
    ...
    memlab.support.errors.MemlabError: f.json, record 0, field role: expected user or assistant, got 'tool'
    """
    value: str = need(holder, key, str, where)
    if value not in among:
        raise MemlabError(f"expected {' or '.join(among)}, got '{value}'", where=f"{where}, field {key}")
    return value


def text_of(value: object, where: str) -> str:
    """Return a value that must be a text."""
    if type(value) is not str:
        raise MemlabError(f"expected text, got {_KINDS.get(type(value), 'something else')}", where=where)
    return value


def texts(holder: object, key: str, where: str) -> list[str]:
    """Return ``holder[key]``, a list whose entries must be texts."""
    return [text_of(entry, f"{where}, field {key}[{at}]") for at, entry in enumerate(need(holder, key, list, where))]


def moment(text: str, form: str, where: str, example: str) -> datetime:
    """Read a date of the form that ``strptime`` takes."""
    try:
        return datetime.strptime(text.strip(), form)
    except ValueError:
        raise MemlabError(f"'{text}' is not a date", where=where, fix=f"write it as {example}") from None


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file; computed once per process while the file stays unchanged."""
    try:
        status = path.stat()
        return _sha256(path, status.st_size, status.st_mtime_ns)
    except OSError as fault:
        raise MemlabError(f"the file cannot be read ({_first_line(fault)})", where=str(path),
                          fix="check that it exists and its permissions") from fault


@lru_cache(maxsize=64)
def _sha256(path: Path, size: int, changed: int) -> str:  # noqa: ARG001 - part of the cache key
    with open_plain(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
