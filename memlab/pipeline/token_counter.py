"""The token counter of an arm: words and punctuation marks, or the reader's own tokenizer.

``Pipeline.tokens`` selects it (read/tokens=NAME); selection, packing and reports count tokens only with it. It is
part of an arm's digest, since arms that count differently cannot be compared. A tokenizer's counts do not add up when
texts are joined, so the joined text must be counted. Whether a prompt fits into a reader's window is counted by the
reader's model itself (``Chat.count``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import polars as pl

from memlab.pipeline.stage import stage

TOKEN = r"\w+|[^\w\s]"  # noqa: S105
"""A word, or one character that is neither part of a word nor a space."""

Texts = TypeVar("Texts", pl.Series, pl.Expr)


@runtime_checkable
class TokenCounter(Protocol):
    """Counts the tokens of texts."""

    @property
    def name(self) -> str:
        """The counter's name; counters with the same name give the same counts."""

    def identity(self) -> dict[str, Any]:
        """Return all that can change a count."""

    def count_each(self, texts: pl.Expr) -> pl.Expr:
        """Count the tokens of each text (Int32)."""


@stage
class Words:
    """Counts words and punctuation marks, for any reader: the default, which needs no tokenizer."""

    name: ClassVar = "words and punctuation marks"

    def identity(self) -> dict[str, Any]:
        """Return all that can change a count."""
        return {"tokens": self.name}

    def count_each(self, texts: pl.Expr) -> pl.Expr:
        """Count the tokens of each text (Int32)."""
        return words_and_marks(texts)


_COUNTER: ContextVar[TokenCounter] = ContextVar("token counter", default=Words())  # noqa: B039 (frozen)


@contextmanager
def counting(by: TokenCounter) -> Iterator[None]:
    """Count all tokens with this counter; raise MemlabError at once if it cannot be loaded."""
    token = _COUNTER.set(by)
    try:
        tokens_of("")
        yield
    finally:
        _COUNTER.reset(token)


def counter() -> TokenCounter:
    """Return the counter of the pipeline that runs, or else words and punctuation marks."""
    return _COUNTER.get()


def count_tokens(texts: Texts) -> Texts:
    """Count the tokens of each text (Int32) with the counter of the pipeline that runs.

    >>> count_tokens(pl.Series(["It's 7 pm, isn't it?", ""])).to_list()
    [11, 0]
    """
    if isinstance(texts, pl.Expr):
        return counter().count_each(texts)  # looked up now, since polars' own threads have no context
    return texts.to_frame("text").select(counter().count_each(pl.col("text"))).to_series().alias(texts.name)


def tokens_of(text: str) -> int:
    """Count the tokens of one text.

    >>> tokens_of("It's 7 pm")
    5
    """
    return int(count_tokens(pl.Series([text], dtype=pl.String)).item())


def words_and_marks(texts: Texts) -> Texts:
    """Count the words and punctuation marks of each text (Int32), whichever counter is in use.

    >>> words_and_marks(pl.Series(["naïve?!"])).to_list()
    [3]
    """
    return texts.str.count_matches(TOKEN).cast(pl.Int32)
