"""The one token counter: words and punctuation marks.

It stands in for a reader's tokenizer until one is there; all arms are counted by it, so that they compare.
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
