"""How a turn is written down: what is searched of it, and the line that a reader sees."""

from __future__ import annotations

import polars as pl

from memlab.tables import text_hash

BETWEEN = "\n\n"
"""Between the turns of a transcript: a blank line, which long turns with paragraphs of their own need."""


def spoken(turns: pl.DataFrame, texts: pl.DataFrame, speakers: bool = True) -> pl.DataFrame:
    """Give the turns in order, with ``said`` (what is searched) and ``line`` (what a reader is shown).

    ``said`` is the raw text, or "Name: text" where the speaker has a name and ``speakers`` is true; a blank turn
    stays as it is. ``line`` always says who speaks: "Name: text", or "user: text" where nobody has a name.

    >>> from memlab.tables import frame, texts_frame
    >>> t = frame("turns", {"corpus": [0, 0], "session": [0, 0], "turn": [0, 1], "role": ["user", "assistant"],
    ...                     "speaker": ["Ann", None], "text": [text_hash("hi"), text_hash("hello")]})
    >>> spoken(t, texts_frame(["hi", "hello"])).select("said", "line").rows()
    [('Ann: hi', 'Ann: hi'), ('hello', 'assistant: hello')]
    """
    raw, name = pl.col("raw"), pl.col("speaker")
    named = pl.lit(speakers) & name.is_not_null() & (raw.str.strip_chars() != "")
    return (
        turns.sort("corpus", "session", "turn")
        .join(texts.rename({"hash": "text", "text": "raw"}), on="text", how="left", maintain_order="left")
        .with_columns(
            pl.when(named).then(pl.format("{}: {}", name.fill_null(""), raw)).otherwise(raw).alias("said"),
            pl.format("{}: {}", name.fill_null(pl.col("role")), raw).alias("line"),
        )
        .drop("text")
    )


def hashes(texts: pl.Series) -> pl.Series:
    """Hash a series of texts, row by row."""
    return pl.Series(texts.name, [text_hash(t) for t in texts], dtype=pl.String)


def grown(texts: pl.DataFrame, *more: pl.DataFrame) -> pl.DataFrame:
    """Return the texts with further (hash, text) frames added; every text once, the old ones first."""
    return pl.concat([texts, *(m.select("hash", "text") for m in more)]).unique(
        "hash", keep="first", maintain_order=True)
