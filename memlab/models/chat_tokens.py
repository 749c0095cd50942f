"""How many tokens a chat model sees: by its own tokenizer from a local folder, or by a stated stand-in."""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl

from memlab.errors import MemlabError
from memlab.models.chat import Message
from memlab.read.tokens import count_tokens

PER_MESSAGE = 8
"""Tokens that a chat template spends on one message, where the template itself cannot be asked; most spend 3 to 6."""

FILES = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "special_tokens_map.json", "vocab.json",
         "merges.txt", "added_tokens.json", "chat_template.jinja")


def valid(text: str) -> str:
    """Return a text that can be sent and stored: half characters (lone surrogates) become U+FFFD, the rest stays.

    >>> valid("a\\x1b[31m\\ud83d") == "a\\x1b[31m" + 3 * "\\ufffd"
    True
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text


class StandIn:
    """1.5 tokens a word or mark, or one for three bytes of UTF-8, whichever is more.

    Above what today's tokenizers make of prose in any script (English: 1.1 to 1.3 a word or mark; Chinese: at most
    one a character, which is three bytes), so that what is counted as fitting fits.
    """

    name = "words and marks x 1.5 or bytes / 3"

    def count(self, text: str) -> int:
        """Count the tokens of a text, from above.

        >>> StandIn().count("It's 7 pm, isn't it?")
        17
        """
        text = valid(text)
        marks = int(count_tokens(pl.Series([text])).item())
        return max(math.ceil(1.5 * marks), math.ceil(len(text.encode()) / 3))

    def conversation(self, messages: Sequence[Message]) -> int:
        """Count the tokens of a whole prompt, from above."""
        return PER_MESSAGE + sum(PER_MESSAGE + self.count(message.content) for message in messages)


class Tokenizer:
    """A transformers tokenizer from a folder of files; loading waits for the first count."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._lock = folder, threading.Lock()
        self._loaded: Any = None
        self.name = f"tokenizer {_digest(folder)}"

    def count(self, text: str) -> int:
        """Count the tokens of a text, without those that mark its beginning and end."""
        with self._lock:  # a tokenizer answers one thread at a time
            return len(self._tokenizer()(valid(text), add_special_tokens=False, verbose=False)["input_ids"])

    def conversation(self, messages: Sequence[Message]) -> int:
        """Count the tokens of a whole prompt, as the model's own chat template lays it out."""
        said = [{"role": message.role, "content": message.content} for message in messages]
        with self._lock:
            tokenizer = self._tokenizer()
        if tokenizer.chat_template:
            try:
                return self.count(tokenizer.apply_chat_template(said, tokenize=False, add_generation_prompt=True))
            except Exception:  # noqa: S110  templates refuse what they do not know (a system message) in many ways
                pass
        return PER_MESSAGE + sum(PER_MESSAGE + self.count(message.content) for message in messages)

    def _tokenizer(self) -> Any:
        if self._loaded is None:
            from transformers import AutoTokenizer

            try:
                self._loaded = AutoTokenizer.from_pretrained(str(self.folder), local_files_only=True)
            except Exception as error:
                raise MemlabError(f"the tokenizer cannot be read ({type(error).__name__}: {str(error)[:160]})",
                                  where=str(self.folder), fix="chat.tokenizer=FOLDER with a model's tokenizer files, "
                                                              "or null for the stand-in") from error
        return self._loaded


Counter = StandIn | Tokenizer


@lru_cache(maxsize=16)
def counter(folder: Path | None) -> Counter:
    """Return the counter of a folder of tokenizer files, or the stand-in; one for the whole process."""
    return StandIn() if folder is None else Tokenizer(folder)


def has_tokenizer(folder: Path) -> bool:
    """Tell whether a folder holds a tokenizer's files."""
    return any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer.model", "vocab.json"))


def _digest(folder: Path) -> str:
    total = hashlib.blake2b(digest_size=16)
    for name in FILES:
        if (folder / name).is_file():
            data = (folder / name).read_bytes()
            total.update(f"{name}={len(data)};".encode() + data)
    return total.hexdigest()
