"""The token counter of an arm: words and punctuation marks, or the reader's own tokenizer.

``Pipeline.tokens`` selects it (conf/read/tokens); selection, packing and reports count tokens with it alone. It is
part of an arm's digest, since arms that count differently cannot be compared. A tokenizer's counts do not add up when
texts are joined, so the joined text must be counted. Whether a prompt fits into a reader's window is counted by the
reader's model itself (``Chat.count``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, Protocol, overload, runtime_checkable

import polars as pl

from memlab.stage import stage

TOKEN = r"\w+|[^\w\s]"  # noqa: S105
"""A word, or one character that is neither word nor space."""


@runtime_checkable
class TokenCounter(Protocol):
    """Counts the tokens of texts."""

    @property
    def name(self) -> str:
        """The counter's name; counters of one name count alike."""

    def identity(self) -> dict[str, Any]:
        """All that can change a count."""

    def counted(self, texts: pl.Expr) -> pl.Expr:
        """Count the tokens of each text (Int32)."""


@stage
class Words:
    """Words and punctuation marks, for any reader: the default where no tokenizer is at hand."""

    name: ClassVar = "words and punctuation marks"

    def identity(self) -> dict[str, Any]:
        """All that can change a count."""
        return {"tokens": self.name}

    def counted(self, texts: pl.Expr) -> pl.Expr:
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


@overload
def count_tokens(texts: pl.Series) -> pl.Series: ...
@overload
def count_tokens(texts: pl.Expr) -> pl.Expr: ...
def count_tokens(texts: pl.Series | pl.Expr) -> pl.Series | pl.Expr:
    """Count the tokens of each text (Int32) with the counter of the pipeline that runs.

    >>> count_tokens(pl.Series(["It's 7 pm, isn't it?", ""])).to_list()
    [11, 0]
    """
    if isinstance(texts, pl.Expr):
        return counter().counted(texts)  # looked up now: polars' own threads have no context
    return texts.to_frame("text").select(counter().counted(pl.col("text"))).to_series().alias(texts.name)


def tokens_of(text: str) -> int:
    """Count the tokens of one text.

    >>> tokens_of("It's 7 pm")
    5
    """
    return int(count_tokens(pl.Series([text], dtype=pl.String)).item())


@overload
def words_and_marks(texts: pl.Series) -> pl.Series: ...
@overload
def words_and_marks(texts: pl.Expr) -> pl.Expr: ...
def words_and_marks(texts: pl.Series | pl.Expr) -> pl.Series | pl.Expr:
    """Count the words and punctuation marks of each text (Int32), whichever counter is in use.

    >>> words_and_marks(pl.Series(["naïve?!"])).to_list()
    [3]
    """
    return texts.str.count_matches(TOKEN).cast(pl.Int32)
