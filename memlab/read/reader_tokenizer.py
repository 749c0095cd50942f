"""Tokens as the reader itself counts them: by its own tokenizer, from local files."""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol, runtime_checkable

import polars as pl
from pydantic import model_validator

from memlab.models.chat.protocol import Chat
from memlab.models.chat.tokenizer import Tokenizer
from memlab.stage import stage
from memlab.tables import text_hash

MOST = 500_000
"""Texts whose counts are remembered, in some 100 MB; then it is begun anew."""

_COUNTED: dict[str, dict[str, int]] = {}
"""Name of a tokenizer -> hash of a text -> its tokens: packs and arms of a sweep show the same texts again."""


@runtime_checkable
class Tokenized(Protocol):
    """A chat model that may have its tokenizer on this machine."""

    def own_tokenizer(self) -> Tokenizer | None:
        """Return the model's own tokenizer, None where it is not on this machine."""
        ...


@stage
class ReaderTokens:
    """Counts by the tokenizer of a chat model, the reader's; without those that mark a text's beginning and end.

    A model whose tokenizer is not on this machine is refused when this is made: nothing stands in for it unsaid.
    """

    chat: Chat

    @model_validator(mode="after")
    def _is_here(self) -> ReaderTokens:
        if _own(self.chat) is None:
            raise ValueError(f"the tokenizer of {getattr(self.chat, 'name', 'the reader')} is not on this machine. "
                             "Fix: chat.tokenizer=FOLDER with the model's own files, or read/tokens=words")
        return self

    @property
    def name(self) -> str:
        """What counts, in words; models that share a tokenizer count alike."""
        return f"the reader's {self._tokenizer().name}"

    def identity(self) -> dict[str, Any]:
        """All that can change a count: the tokenizer's files, and nothing else of the model."""
        return {"tokens": self.name}

    def counted(self, texts: pl.Expr) -> pl.Expr:
        """Count the tokens of each text (Int32); raises MemlabError where the tokenizer's files cannot be read."""
        tokenizer = self._tokenizer()
        tokenizer.counts([])  # loads it here, where polars does not wrap what it raises
        return texts.map_batches(partial(_counts, tokenizer), return_dtype=pl.Int32, is_elementwise=True)

    def _tokenizer(self) -> Tokenizer:
        found = _own(self.chat)
        assert found is not None, "its files were removed while it was in use"
        return found


def _own(chat: Chat) -> Tokenizer | None:
    return chat.own_tokenizer() if isinstance(chat, Tokenized) else None


def _counts(tokenizer: Tokenizer, texts: pl.Series) -> pl.Series:
    """Count each text once, and no text that was counted before; null stays null."""
    known = _COUNTED.setdefault(tokenizer.name, {})
    hashes = {text: text_hash(text) for text in texts.to_list() if text is not None}
    found = {text: known[key] for text, key in hashes.items() if key in known}
    new = [text for text in hashes if text not in found]
    found.update(zip(new, tokenizer.counts(new)))
    if len(known) + len(new) > MOST:
        known.clear()
    known.update((hashes[text], found[text]) for text in new)
    return pl.Series(texts.name, [found.get(text) for text in texts.to_list()], dtype=pl.Int32)
