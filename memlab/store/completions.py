"""What chat models said: one folder a fingerprint, one append-only file of lines a process.

A line is written whole, with a digest, as soon as a reply is there: a model's seconds are worth more than a segment's
neatness. A last line that was cut off by the end of its process is passed over; a damaged one is named in a warning,
and asked for again. Two processes may ask the same at the same time: of two lines with one key, whoever reads them
takes the first, files by name.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
import warnings
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from memlab.errors import MemlabError
from memlab.models.chat.protocol import Chat, Completion, Prompt
from memlab.runtime.progress import progress
from memlab.store.segments import IDENTITY, write_file, writing
from memlab.store.writer import model_name

SUFFIX = ".jsonl"
_START = b'{"check": "'
_DIGITS = 16


def encode(key: str, completion: Completion) -> bytes:
    """Write one line; ASCII alone, so that no character of a reply can end it or be changed by an encoding."""
    rest = json.dumps({"key": key, **asdict(completion)}, ensure_ascii=True)[1:].encode()
    return _START + _digest(rest) + b'", ' + rest + b"\n"


def decode(line: bytes) -> tuple[str, Completion] | None:
    """Read one line, without its end; None if it is damaged.

    >>> decode(encode("k", Completion("<b>\\x1b[0m\\u2028", 3, 2, 0.5))[:-1])[1].text
    '<b>\\x1b[0m\\u2028'
    """
    at = len(_START)
    check, rest = line[at:at + _DIGITS], line[at + _DIGITS + 3:]
    if not line.startswith(_START) or check != _digest(rest):
        return None
    row = json.loads(b"{" + rest)
    return row.pop("key"), Completion(**row)


def lines(path: Path, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield (offset after it, line) of every finished line from an offset on; none if the file is gone."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            for line in file:
                if not line.endswith(b"\n"):  # being written, or cut off by the end of its process
                    return
                start += len(line)
                yield start, line[:-1]
    except FileNotFoundError:
        return


class Completions:
    """One fingerprint's completions, read once and again where files have grown."""

    def __init__(self, path: Path, identity: str) -> None:
        self.path, self.identity = path, identity
        self._known: dict[str, Completion] = {}
        self._read: dict[str, int] = {}  # file -> bytes read
        self._own: str | None = None

    def find(self, keys: Iterable[str]) -> dict[str, Completion]:
        """Return what is known of some keys; the disk is looked at only if something is unknown."""
        wanted = set(keys)
        if not wanted <= self._known.keys():
            self._refresh()
        return {key: self._known[key] for key in wanted & self._known.keys()}

    def take(self, chat: Chat, prompts: Mapping[str, Prompt]) -> Generator[tuple[str, Completion], None, None]:
        """Ask a chat, and yield (key, completion) when it is stored.

        A refusal is not stored: finding it again costs no reply, and a server with more room may answer next time.
        Raises MemlabError if the store cannot be written, or the chat leaves a prompt unanswered.
        """
        keys = list(prompts)
        left = set(keys)
        replies = chat.complete(list(prompts.values())) if keys else iter(())
        start, tokens = time.monotonic(), 0
        try:
            with progress(model_name(chat), len(keys), "replies") as step:
                for at, completion in replies:
                    left.discard(keys[at])
                    tokens += completion.completion_tokens
                    if completion.finish != "refused":
                        self._add(keys[at], completion)
                    yield keys[at], completion
                    step(1, f"{tokens / max(1e-9, time.monotonic() - start):,.0f} tokens/s")
        finally:  # whatever ended this: no request goes on behind the caller's back
            getattr(replies, "close", lambda: None)()
        if left:
            raise MemlabError(f"{model_name(chat)} gave nothing for {len(left)} of {len(keys)} prompts")

    def _add(self, key: str, completion: Completion) -> None:
        line = encode(key, completion)
        if self._own is None or not self._own.startswith(f"{os.getpid()}-"):  # a forked process has its own file
            self._own = f"{os.getpid()}-{secrets.token_hex(8)}{SUFFIX}"
        name, self._own = self._own, None  # after a failure a new file: nothing may follow half a line
        with writing(self.path):
            if not (self.path / IDENTITY).exists():
                write_file(self.path / IDENTITY, self.identity.encode())
            with (self.path / name).open("ab", buffering=0) as file:
                rest = line
                while rest:  # handed to the operating system at once: whatever ends this process, it stays
                    rest = rest[file.write(rest) or 0:]
        self._own = name
        self._read[name] = self._read.get(name, 0) + len(line)
        self._known.setdefault(key, completion)

    def _refresh(self) -> None:
        for path in listed(self.path):
            damaged = 0
            for end, line in lines(path, self._read.get(path.name, 0)):
                self._read[path.name] = end
                row = decode(line)
                if row is None:
                    damaged += 1
                else:
                    self._known.setdefault(*row)
            if damaged:
                warnings.warn(f"{path}: the bytes of {damaged} line{'s' * (damaged > 1)} do not match their digest; "
                              "what stood there is asked for again", stacklevel=2)


def listed(folder: Path) -> list[Path]:
    """Return a folder's files of completions by name; none if there is no folder."""
    return sorted(path for path in folder.glob(f"*{SUFFIX}") if not path.name.startswith("."))


def damaged(path: Path) -> int:
    """Count the lines of a file whose bytes do not match their digest."""
    return sum(decode(line) is None for _, line in lines(path))


def mend(path: Path) -> None:
    """Put a file without its damaged lines into the place of one with them."""
    kept = b"".join(line + b"\n" for _, line in lines(path) if decode(line) is not None)
    write_file(path.with_name(f"{path.stem}-mended{SUFFIX}"), kept)
    path.unlink(missing_ok=True)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGITS // 2).hexdigest().encode()
