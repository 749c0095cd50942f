"""Transcripts: turns rendered for search and for the reader, rounds numbered."""

from __future__ import annotations

import polars as pl

from memlab.tables import SESSION, with_text

TURN_SEPARATOR = "\n\n"
"""A blank line stands between the turns of a transcript: long turns have line breaks of their own."""


def render_turns(turns: pl.DataFrame, texts: pl.DataFrame, speakers: bool = True) -> pl.DataFrame:
    """Return the turns in order, with the columns ``text``, ``search_text`` and ``display_text``.

    ``search_text`` is "Name: text" if the speaker has a name and ``speakers`` is true, else the text; a blank turn
    stays as it is. ``display_text`` always names the speaker: "Name: text", or "user: text" where nobody has a name.

    >>> from memlab.tables import frame, text_hash, texts_frame
    >>> t = frame("turns", {"corpus": [0, 0], "session": [0, 0], "turn": [0, 1], "role": ["user", "assistant"],
    ...                     "speaker": ["Ann", None], "text_id": [text_hash("hi"), text_hash("hello")]})
    >>> render_turns(t, texts_frame(["hi", "hello"])).select("search_text", "display_text").rows()
    [('Ann: hi', 'Ann: hi'), ('hello', 'assistant: hello')]
    """
    raw, name = pl.col("text"), pl.col("speaker")
    prefixed = pl.lit(speakers) & name.is_not_null() & (raw.str.strip_chars() != "")
    return (
        with_text(turns.sort("corpus", "session", "turn"), texts)
        .with_columns(
            pl.when(prefixed).then(pl.format("{}: {}", name.fill_null(""), raw)).otherwise(raw).alias("search_text"),
            pl.format("{}: {}", name.fill_null(pl.col("role")), raw).alias("display_text"),
        )
        .drop("text_id")
    )


def round_numbers() -> pl.Expr:
    """Number the rounds of each session, given its turns in order.

    A round is a turn of the asker and all turns up to the asker's next one. The asker is the user; among people with
    names, whoever speaks first as a user. Turns before the asker's first belong to round 0.
    """
    user, name = pl.col("role") == "user", pl.col("speaker").fill_null("")
    opens = user & (name == name.filter(user).first().over(SESSION))
    return opens.fill_null(False).cast(pl.Int32).cum_sum().over(SESSION)
