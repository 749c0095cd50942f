"""Token counts of prompts: by a chat model's own tokenizer from a local folder, or by a heuristic."""

from __future__ import annotations

import hashlib
import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl

from memlab.models.protocols import Message
from memlab.pipeline.token_counter import words_and_marks
from memlab.support.errors import MemlabError
from memlab.support.text.display import replace_surrogates

PER_MESSAGE = 8
"""Tokens that a chat template adds to one message if the template itself is unknown; most add 3 to 6."""

BATCH = 256
"""Texts per call of a tokenizer: enough for all cores, and whole sessions still fit into memory."""

FILES = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "special_tokens_map.json", "vocab.json",
         "merges.txt", "added_tokens.json", "chat_template.jinja")


def valid(text: str) -> str:
    """Return a text as it is sent: each lone surrogate becomes three U+FFFD, one per byte, as a server reads it.

    >>> valid("a\\ud83d") == "a" + 3 * "\\ufffd"
    True
    """
    return replace_surrogates(text, 3 * "\ufffd")


class PromptCounter(ABC):
    """Counts the tokens of texts and prompts."""

    name: str

    @abstractmethod
    def counts(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text, without those that mark its beginning and end."""

    @abstractmethod
    def fits(self, messages: Sequence[Message], room: int) -> bool:
        """Return whether a whole prompt has at most ``room`` tokens; an obviously short one is not counted."""

    def count(self, text: str) -> int:
        """Count the tokens of one text."""
        return self.counts([text])[0]

    def conversation(self, messages: Sequence[Message]) -> int:
        """Count the tokens of a whole prompt."""
        return PER_MESSAGE + sum(PER_MESSAGE + n for n in self.counts([message.content for message in messages]))


class HeuristicCounter(PromptCounter):
    """1.5 tokens per word or mark, or one token per three bytes of UTF-8, whichever is more.

    This is an upper bound for current tokenizers on prose in any script (English: 1.1 to 1.3 tokens per word or mark;
    Chinese: at most one per character, which is three bytes), so a prompt that fits by this count does fit.

    >>> HeuristicCounter().count("It's 7 pm, isn't it?")
    17
    """

    name = "words and marks x 1.5 or bytes / 3"

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Return an upper bound of the tokens of each text."""
        texts = [valid(text) for text in texts]
        marks = words_and_marks(pl.Series(texts, dtype=pl.String)).to_list()  # one call for all, which is much faster
        return [max(math.ceil(1.5 * n), math.ceil(_bytes(text) / 3)) for n, text in zip(marks, texts)]

    def fits(self, messages: Sequence[Message], room: int) -> bool:
        """Return whether a whole prompt has at most ``room`` tokens.

        A text has at most as many words and marks as bytes, so 1.5 times its bytes is an upper bound.
        """
        bound = PER_MESSAGE + sum(PER_MESSAGE + math.ceil(1.5 * _bytes(message.content)) for message in messages)
        return bound <= room or self.conversation(messages) <= room


class Tokenizer(PromptCounter):
    """A transformers tokenizer from a folder of files, loaded at the first count."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._lock = folder, threading.Lock()
        self._loaded: Any = None
        self.known: dict[str, int] = {}  # hash of a text -> its tokens, as far as a caller keeps them here
        self.name = f"tokenizer {_digest(folder)}"

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text, many at a time; loads the tokenizer even for none."""
        lengths: list[int] = []
        with self._lock:  # a tokenizer serves one thread at a time
            tokenizer = self._tokenizer()
            for start in range(0, len(texts), BATCH):
                ids = tokenizer([valid(text) for text in texts[start:start + BATCH]], add_special_tokens=False,
                                verbose=False, return_attention_mask=False, return_token_type_ids=False)["input_ids"]
                lengths += map(len, ids)
        return lengths

    def conversation(self, messages: Sequence[Message]) -> int:
        """Count the tokens of a whole prompt in the model's own chat template."""
        prompt = self._apply_template(messages)
        return super().conversation(messages) if prompt is None else self.count(prompt)

    def fits(self, messages: Sequence[Message], room: int) -> bool:
        """Return whether a whole prompt has at most ``room`` tokens.

        In ASCII a token has at least one character, apart from the space that some tokenizers put before a text;
        outside ASCII one character may become several tokens.
        """
        prompt = self._apply_template(messages)
        if prompt is None:
            return super().conversation(messages) <= room
        return (prompt.isascii() and len(prompt) < room) or self.count(prompt) <= room

    def _apply_template(self, messages: Sequence[Message]) -> str | None:
        """Return the messages in the model's own template; None if it has none, or the template refuses them."""
        with self._lock:
            tokenizer = self._tokenizer()
        if not tokenizer.chat_template:
            return None
        rows = [{"role": message.role, "content": message.content} for message in messages]
        try:
            return str(tokenizer.apply_chat_template(rows, tokenize=False, add_generation_prompt=True))
        except Exception:  # templates raise many kinds of errors, e.g. for a system message
            return None

    def _tokenizer(self) -> Any:
        if self._loaded is None:
            from transformers import AutoTokenizer

            try:
                self._loaded = AutoTokenizer.from_pretrained(str(self.folder), local_files_only=True)
            except Exception as error:
                raise MemlabError(f"the tokenizer cannot be read ({type(error).__name__}: {str(error)[:160]})",
                                  where=str(self.folder), fix="chat.tokenizer=FOLDER with a model's tokenizer files, "
                                                              "or null for the heuristic") from error
        return self._loaded


@lru_cache(maxsize=16)
def prompt_counter(folder: Path | None) -> HeuristicCounter | Tokenizer:
    """Return the counter of a folder of tokenizer files, or the heuristic; cached for the process."""
    return HeuristicCounter() if folder is None else Tokenizer(folder)


def has_tokenizer(folder: Path) -> bool:
    """Return whether a folder holds a tokenizer's files."""
    return any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer.model", "vocab.json"))


def _bytes(text: str) -> int:
    """Count the bytes of a text as it is sent."""
    return len(text) if text.isascii() else len(valid(text).encode())


def _digest(folder: Path) -> str:
    total = hashlib.blake2b(digest_size=16)
    for name in FILES:
        if (folder / name).is_file():
            data = (folder / name).read_bytes()
            total.update(f"{name}={len(data)};".encode() + data)
    return total.hexdigest()
