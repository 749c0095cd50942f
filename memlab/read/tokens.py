"""The one token counter: words and punctuation marks.

It stands in for a reader's tokenizer until one is there; all arms are counted by it, so that they compare.

A reader's tokenizer takes its place by another body of ``count_tokens``, which is all that selection, packing and
the reports know of tokens: load it from local files once a process, return an Int32 a text. It is no setting,
because arms that count differently do not compare; and the hash of an arm covers this file, so that what was
counted otherwise is never taken for the same run. Whether a prompt fits into a reader's window is not asked here,
but of the reader itself (``Chat.count``).
"""

from __future__ import annotations

from typing import overload

import polars as pl

TOKEN = r"\w+|[^\w\s]"  # noqa: S105
"""A word, or one mark that is neither word nor space."""


@overload
def count_tokens(texts: pl.Series) -> pl.Series: ...
@overload
def count_tokens(texts: pl.Expr) -> pl.Expr: ...
def count_tokens(texts: pl.Series | pl.Expr) -> pl.Series | pl.Expr:
    """Count the tokens of each text (Int32).

    >>> count_tokens(pl.Series(["It's 7 pm, isn't it?", ""])).to_list()
    [11, 0]
    """
    return texts.str.count_matches(TOKEN).cast(pl.Int32)
