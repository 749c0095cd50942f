"""The one token counter of an arm: words and punctuation marks, or the reader's own tokenizer.

``Pipeline.tokens`` says which (conf/read/tokens), and all that selection, packing and the reports know of tokens is
counted by it. It is part of an arm's digest: arms that count differently do not compare. Words and marks stand in
where no reader's tokenizer is at hand (``memlab.read.reader_tokenizer`` has that). A tokenizer's counts do not add up
where texts are joined, so whoever joins texts counts the joined text. Whether a prompt fits into a reader's window is
not asked here, but of the reader itself (``Chat.count``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, overload, runtime_checkable

import polars as pl

from memlab.stage import stage

TOKEN = r"\w+|[^\w\s]"  # noqa: S105
"""A word, or one mark that is neither word nor space."""


@runtime_checkable
class TokenCounter(Protocol):
    """Texts to numbers of tokens."""

    @property
    def name(self) -> str:
        """What counts, in words; counters of one name count alike."""
        ...

    def identity(self) -> dict[str, Any]:
        """All that can change a count."""
        ...

    def counted(self, texts: pl.Expr) -> pl.Expr:
        """Count the tokens of each text (Int32)."""
        ...


@stage
class Words:
    """Counts words and punctuation marks, whoever reads: the stated stand-in for a reader's tokenizer."""

    @property
    def name(self) -> str:
        """What counts, in words."""
        return "words and punctuation marks"

    def identity(self) -> dict[str, Any]:
        """All that can change a count."""
        return {"tokens": self.name}

    def counted(self, texts: pl.Expr) -> pl.Expr:
        """Count the tokens of each text (Int32)."""
        return words_and_marks(texts)


_COUNTER: ContextVar[TokenCounter] = ContextVar("token counter", default=Words())  # noqa: B039 (frozen)


@contextmanager
def counting(by: TokenCounter) -> Iterator[None]:
    """Let all tokens be counted by a counter; raises MemlabError at once where it cannot be loaded."""
    before = _COUNTER.set(by)
    try:
        tokens_of("")
        yield
    finally:
        _COUNTER.reset(before)


def counter() -> TokenCounter:
    """Return what counts here and now: the counter of the pipeline that runs, else words and marks."""
    return _COUNTER.get()


@overload
def count_tokens(texts: pl.Series) -> pl.Series: ...
@overload
def count_tokens(texts: pl.Expr) -> pl.Expr: ...
def count_tokens(texts: pl.Series | pl.Expr) -> pl.Series | pl.Expr:
    """Count the tokens of each text (Int32), by the counter of the pipeline that runs.

    >>> count_tokens(pl.Series(["It's 7 pm, isn't it?", ""])).to_list()
    [11, 0]
    """
    if isinstance(texts, pl.Expr):
        return counter().counted(texts)  # asked for here: polars' own threads would not know
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
    """Count the words and punctuation marks of each text (Int32), whatever else counts tokens.

    >>> words_and_marks(pl.Series(["naïve?!"])).to_list()
    [3]
    """
    return texts.str.count_matches(TOKEN).cast(pl.Int32)
