"""Transcripts: turns rendered for search and for the reader, rounds numbered, texts added to their table."""

from __future__ import annotations

import polars as pl

from memlab.tables import text_hash

TURN_SEPARATOR = "\n\n"
"""A blank line stands between the turns of a transcript: long turns have line breaks of their own."""


def render_turns(turns: pl.DataFrame, texts: pl.DataFrame, speakers: bool = True) -> pl.DataFrame:
    """Return the turns in order, with the columns ``raw``, ``search_text`` and ``display_text``.

    ``raw`` is the text itself. ``search_text`` is "Name: text" if the speaker has a name and ``speakers`` is true, else
    ``raw``; a blank turn stays as it is. ``display_text`` always names the speaker: "Name: text", or "user: text" where
    nobody has a name.

    >>> from memlab.tables import frame, texts_frame
    >>> t = frame("turns", {"corpus": [0, 0], "session": [0, 0], "turn": [0, 1], "role": ["user", "assistant"],
    ...                     "speaker": ["Ann", None], "text": [text_hash("hi"), text_hash("hello")]})
    >>> render_turns(t, texts_frame(["hi", "hello"])).select("search_text", "display_text").rows()
    [('Ann: hi', 'Ann: hi'), ('hello', 'assistant: hello')]
    """
    raw, name = pl.col("raw"), pl.col("speaker")
    named = pl.lit(speakers) & name.is_not_null() & (raw.str.strip_chars() != "")
    return (
        turns.sort("corpus", "session", "turn")
        .join(texts.rename({"hash": "text", "text": "raw"}), on="text", how="left", maintain_order="left")
        .with_columns(
            pl.when(named).then(pl.format("{}: {}", name.fill_null(""), raw)).otherwise(raw).alias("search_text"),
            pl.format("{}: {}", name.fill_null(pl.col("role")), raw).alias("display_text"),
        )
        .drop("text")
    )


def round_numbers() -> pl.Expr:
    """Number the rounds of each session, given its turns in order.

    A round is a turn of the asker and all turns up to the asker's next one. The asker is the user; among people with
    names, whoever speaks first as a user. Turns before the asker's first belong to round 0.
    """
    user, name, session = pl.col("role") == "user", pl.col("speaker").fill_null(""), ["corpus", "session"]
    opens = user & (name == name.filter(user).first().over(session))
    return opens.fill_null(False).cast(pl.Int32).cum_sum().over(session)


def hash_texts(texts: pl.Series) -> pl.Series:
    """Hash each text of a series."""
    return pl.Series(texts.name, [text_hash(t) for t in texts], dtype=pl.String)


def add_texts(texts: pl.DataFrame, *more: pl.DataFrame) -> pl.DataFrame:
    """Return the texts with further (hash, text) frames added: each text once, the old ones first."""
    return pl.concat([texts, *(m.select("hash", "text") for m in more)]).unique(
        "hash", keep="first", maintain_order=True)
