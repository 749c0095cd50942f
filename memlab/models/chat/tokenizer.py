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
from memlab.models.chat.protocol import Message
from memlab.token_counter import words_and_marks

PER_MESSAGE = 8
"""Tokens that a chat template spends on one message, where the template itself cannot be asked; most spend 3 to 6."""

BATCH = 256
"""Texts that a tokenizer is given at once: enough for all cores, and whole sessions still fit into memory."""

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
        return self._counts([text])[0]

    def conversation(self, messages: Sequence[Message]) -> int:
        """Count the tokens of a whole prompt, from above."""
        counts = self._counts([message.content for message in messages])
        return PER_MESSAGE + PER_MESSAGE * len(counts) + sum(counts)

    def fits(self, messages: Sequence[Message], room: int) -> bool:
        """Tell whether a whole prompt has at most ``room`` tokens; a short one is not counted.

        No text has more words and marks than bytes, so 1.5 times its bytes is above either count of it.
        """
        most = PER_MESSAGE + sum(PER_MESSAGE + math.ceil(1.5 * _size(message.content)) for message in messages)
        return most <= room or self.conversation(messages) <= room

    def _counts(self, texts: Sequence[str]) -> list[int]:
        sound = [valid(text) for text in texts]
        marks = words_and_marks(pl.Series(sound, dtype=pl.String)).to_list()  # at once: a call costs more than a text
        return [max(math.ceil(1.5 * n), math.ceil(_size(text) / 3)) for n, text in zip(marks, sound)]


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

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text as ``count`` does, many at a time; loads the tokenizer even for none."""
        made: list[int] = []
        with self._lock:
            tokenizer = self._tokenizer()
            for start in range(0, len(texts), BATCH):
                ids = tokenizer([valid(text) for text in texts[start:start + BATCH]], add_special_tokens=False,
                                verbose=False, return_attention_mask=False, return_token_type_ids=False)["input_ids"]
                made += map(len, ids)
        return made

    def conversation(self, messages: Sequence[Message]) -> int:
        """Count the tokens of a whole prompt, as the model's own chat template lays it out."""
        laid_out = self._laid_out(messages)
        if laid_out is not None:
            return self.count(laid_out)
        return PER_MESSAGE + sum(PER_MESSAGE + self.count(message.content) for message in messages)

    def fits(self, messages: Sequence[Message], room: int) -> bool:
        """Tell whether a whole prompt has at most ``room`` tokens; a short one in ASCII is not counted.

        A token has a character at least, besides the space that some tokenizers put before a text; outside ASCII some
        of them write one character as several.
        """
        laid_out = self._laid_out(messages)
        if laid_out is not None and laid_out.isascii() and len(laid_out) < room:
            return True
        return (self.conversation(messages) if laid_out is None else self.count(laid_out)) <= room

    def _laid_out(self, messages: Sequence[Message]) -> str | None:
        """Write the messages as the model's own template does; None where it has none, or refuses them."""
        with self._lock:
            tokenizer = self._tokenizer()
        if not tokenizer.chat_template:
            return None
        said = [{"role": message.role, "content": message.content} for message in messages]
        try:
            return str(tokenizer.apply_chat_template(said, tokenize=False, add_generation_prompt=True))
        except Exception:  # templates refuse what they do not know (a system message) in many ways
            return None

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


def _size(text: str) -> int:
    """Count the bytes of a text as it is sent."""
    return len(text) if text.isascii() else len(valid(text).encode())


def _digest(folder: Path) -> str:
    total = hashlib.blake2b(digest_size=16)
    for name in FILES:
        if (folder / name).is_file():
            data = (folder / name).read_bytes()
            total.update(f"{name}={len(data)};".encode() + data)
    return total.hexdigest()
