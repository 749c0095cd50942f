"""Completions of chat models: one folder per fingerprint, one append-only file of checked lines per process.

A line is written as soon as a reply arrives: the seconds that a model spent on it are worth more than large files. A
last line that was cut off by the end of its process is ignored; a damaged one is named in a warning, and its prompt is
asked again. If two processes ask the same prompt at the same time, readers take the first line, files by name.
"""

from __future__ import annotations

import math
import os
import secrets
import threading
import time
import warnings
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np

from memlab.models.protocols import MAX_TOKENS, Chat, Completion, Prompt, prompt_costs
from memlab.store.segment import store_errors, write_file, write_identity
from memlab.store.writer import model_name
from memlab.support.errors import MemlabError
from memlab.support.files import MOST_OF_A_LINE, decode_line, encode_line, is_private, open_plain, write_all
from memlab.support.progress import progress
from memlab.support.text.display import replace_surrogates

Totals = dict[str, dict[str, float]]
"""Chat model -> the replies of one stage: their number, tokens and seconds, and the seconds of p50 and p95 of them."""


def totals(replies: Sequence[tuple[str, Completion]]) -> Totals:
    """Return the totals of replies; stored replies count as if they were asked for now.

    >>> reply = Completion("yes", 100, 2, 0.5)
    >>> totals([("m", reply), ("m", reply)])
    {'m': {'replies': 2, 'prompt_tokens': 200, 'completion_tokens': 4, 'seconds': 1.0, 'p50': 0.5, 'p95': 0.5}}
    """
    by_model: dict[str, list[Completion]] = {}
    for model, reply in replies:
        by_model.setdefault(model, []).append(reply)
    return {model: {
        "replies": len(of), "prompt_tokens": sum(one.prompt_tokens for one in of),
        "completion_tokens": sum(one.completion_tokens for one in of), "seconds": sum(one.seconds for one in of),
        "p50": float(np.quantile([one.seconds for one in of], 0.5)),
        "p95": float(np.quantile([one.seconds for one in of], 0.95))} for model, of in by_model.items()}


def merge_totals(parts: Iterable[Mapping[str, Totals]]) -> dict[str, Totals]:
    """Add up the totals by slot of several parts of one arm; quantiles of parts do not add up and are left out.

    >>> merge_totals([{"rerank": {"m": {"replies": n, "seconds": 1.0, "p50": 0.1}}} for n in (2, 3)])
    {'rerank': {'m': {'replies': 5, 'seconds': 2.0}}}
    """
    merged: dict[str, Totals] = {}
    for part in parts:
        for slot, of in part.items():
            for model, numbers in of.items():
                sums = merged.setdefault(slot, {}).setdefault(model, {})
                for name in numbers.keys() - {"p50", "p95"}:
                    sums[name] = sums.get(name, 0) + numbers[name]
    return {slot: {model: dict(sorted(sums.items())) for model, sums in of.items()} for slot, of in merged.items()}


SUFFIX = ".jsonl"
_FIELDS = tuple(field.name for field in fields(Completion))
"""Fields of a line that are read."""


def encode(key: str, completion: Completion) -> bytes:
    """Return the line of a completion."""
    row = asdict(completion)
    if row["logprob"] is None:  # what a reply does not have takes no room
        del row["logprob"]
    return encode_line({"key": key, **row})


def decode(line: bytes) -> tuple[str, Completion] | None:
    """Return the key and the completion of a line; None if it is damaged, or holds what no reply can be.

    >>> decode(encode("k", Completion("<b>\\x1b[0m\\u2028", 3, 2, 0.5)))[1].text
    '<b>\\x1b[0m\\u2028'
    """
    row = decode_line(line)
    if row is None:
        return None
    try:
        key, reply = row["key"], Completion(**{name: row[name] for name in _FIELDS if name in row})
    except (KeyError, TypeError):
        return None
    return (key, reply) if type(key) is str and _usable(reply) else None


def _usable(reply: Completion) -> bool:
    """Return whether the fields of a reply have their types, and tables can hold them."""
    counts = reply.prompt_tokens, reply.completion_tokens
    numbers = [reply.seconds, *([] if reply.logprob is None else [reply.logprob])]
    return (all(type(count) is int and 0 <= count <= MAX_TOKENS for count in counts)
            and all(type(number) in (int, float) and abs(number) < math.inf for number in numbers)
            and type(reply.repaired) is bool
            and all(type(text) is str and replace_surrogates(text) == text
                    for text in (reply.text, reply.finish)))


def lines(path: Path, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield (offset after it, line) of each finished line from an offset on; nothing if the file is gone."""
    try:
        with open_plain(path) as file:
            file.seek(start)
            while line := file.readline(MOST_OF_A_LINE):
                if not line.endswith(b"\n"):  # being written, or cut off by the end of its process
                    return
                start += len(line)
                yield start, line
    except FileNotFoundError:
        return


class Completions:
    """The completions of one fingerprint, read once, and again where files have grown. Safe for concurrent threads."""

    def __init__(self, path: Path, identity: str) -> None:
        self.path, self.identity = path, identity
        self._cached: dict[str, Completion] = {}
        self._read: dict[str, int] = {}  # file -> bytes read
        self._own: str | None = None
        self._lock = threading.Lock()

    def find(self, keys: Iterable[str]) -> dict[str, Completion]:
        """Return the stored completions of some keys; the disk is read only if one is not in memory."""
        wanted = set(keys)
        with self._lock:
            if not wanted <= self._cached.keys():
                self._refresh()
            return {key: self._cached[key] for key in wanted & self._cached.keys()}

    def ask(self, chat: Chat, prompts: Mapping[str, Prompt]) -> Generator[tuple[str, Completion], None, None]:
        """Ask a chat model, and yield (key, completion) when it is stored.

        A refusal is not stored: asking again costs no reply, and a server with more room may answer next time.
        Raises MemlabError if the store cannot be written, or the model leaves a prompt unanswered.
        """
        keys = list(prompts)
        unanswered = set(keys)
        replies = chat.complete(list(prompts.values())) if keys else iter(())
        start, tokens = time.monotonic(), 0
        try:
            costs = prompt_costs(list(prompts.values()))
            with progress(model_name(chat), len(keys), "replies", cost=float(costs.sum())) as step:
                for at, completion in replies:
                    unanswered.discard(keys[at])
                    tokens += completion.completion_tokens
                    if completion.finish != "refused":
                        with self._lock:
                            self._add(keys[at], completion)
                    yield keys[at], completion
                    step(1, f"{tokens / max(1e-9, time.monotonic() - start):,.0f} tokens/s", float(costs[at]))
        finally:  # whatever ended this: no request goes on behind the caller's back
            getattr(replies, "close", lambda: None)()
        if unanswered:
            raise MemlabError(f"{model_name(chat)} gave nothing for {len(unanswered)} of {len(keys)} prompts")

    def _add(self, key: str, completion: Completion) -> None:
        line = encode(key, completion)
        if self._own is None or not self._own.startswith(f"{os.getpid()}-"):  # a forked process has its own file
            self._own = f"{os.getpid()}-{secrets.token_hex(8)}{SUFFIX}"
        name, self._own = self._own, None  # after a failure a new file: nothing may follow half a line
        with store_errors(self.path):
            write_identity(self.path, self.identity)
            (self.path / name).touch(0o600 if is_private(self.path) else 0o666)
            with (self.path / name).open("ab", buffering=0) as file:
                write_all(file, line)
        self._own = name
        self._read[name] = self._read.get(name, 0) + len(line)
        self._cached.setdefault(key, completion)

    def _refresh(self) -> None:
        for path in files(self.path):
            bad = 0
            try:
                for end, line in lines(path, self._read.get(path.name, 0)):
                    self._read[path.name] = end
                    row = decode(line)
                    if row is None:
                        bad += 1
                    else:
                        self._cached.setdefault(*row)
            except OSError as error:
                warnings.warn(f"{path} cannot be read ({error.strerror}); its prompts are asked again", stacklevel=2)
            if bad:
                warnings.warn(f"{path}: the bytes of {bad} line{'s' * (bad > 1)} do not match their digest; "
                              "their prompts are asked again", stacklevel=2)


def files(folder: Path) -> list[Path]:
    """Return a folder's files of completions by name; none if there is no folder."""
    return sorted(path for path in folder.glob(f"*{SUFFIX}") if not path.name.startswith("."))


def count_damaged(path: Path) -> int:
    """Return the number of lines of a file whose bytes do not match their digest."""
    return sum(decode(line) is None for _, line in lines(path))


def remove_damaged(path: Path) -> None:
    """Replace a file by one without its damaged lines."""
    intact = b"".join(line for _, line in lines(path) if decode(line) is not None)
    write_file(path.with_name(f"{path.stem}-mended{SUFFIX}"), intact)
    path.unlink(missing_ok=True)
