"""Features of a turn by itself, and of a question by itself."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.tables import SESSION, Tables, with_text

QUESTION_WORDS = ("when", "where", "who", "what", "which", "why", "how", "how many", "how long", "would", "did", "is")

TIME_WORDS = (r"(?i)\b(?:yesterday|today|tonight|tomorrow|ago|last|next|since|recent(?:ly)?|"
              r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|week(?:end)?s?|months?|years?|january|february|march|april|june|july|august|september|"
              r"october|november|december|(?:19|20)\d\d)\b")

FLAGS = {
    "digit": r"\d", "time word": TIME_WORDS, "asks": r"\?", "money": r"[$€£]\s?\d|\d+ (?:dollars|bucks)",
    "first person": r"(?i)\b(?:i|i'm|i've|i'd|i'll|my|me|mine|we|our|us|we're|we've)\b",
    "second person": r"(?i)\b(?:you|your|yours|you're|you've)\b",
    "filler": r"(?i)^\W*(?:wow|thanks|thank you|that's|sounds|awesome|cool|great|glad|congrat|nice|aw+|yeah|bye|hey|"
              r"hi|sure|no problem|absolutely|totally)\b",
    "quote": r"[\"“].{3,}[\"”]", "list": r"(?m)^\s*(?:\d+\.|[-*•])\s",
}
"""Name -> expression that the text of a turn matches."""


NEAR = ("ends with ?", "words", "time word")
"""Features that the turns before and behind have as well."""


def nearby(head: pl.DataFrame, tables: Tables) -> tuple[pl.DataFrame, NDArray[np.int64]]:
    """Return the turns of these rows and their neighbours, and the place of each row's own turn among them, (n,).

    Turns have their text, ``place`` in the session and its ``size``.
    """
    own = head.select("unit", *SESSION, "turn").unique("unit")
    wanted = pl.concat([own.select(*SESSION, pl.col("turn") + step) for step in (-1, 0, 1)]).unique()
    turns = tables["turns"].sort(*SESSION, "turn").with_columns(
        pl.len().over(SESSION).alias("size"), pl.int_range(pl.len()).over(SESSION).alias("place"))
    said = with_text(turns.join(wanted, on=[*SESSION, "turn"], how="semi", maintain_order="left"),
                     tables["texts"]).with_columns(pl.col("text").fill_null(""))
    row_of = own.join(said.select(*SESSION, "turn").with_row_index("row"), on=[*SESSION, "turn"])
    rows = head.select("unit").join(row_of, on="unit", how="left", maintain_order="left")["row"]
    return said, rows.cast(pl.Int64).to_numpy()


def turn_features(head: pl.DataFrame, said: pl.DataFrame, here: NDArray[np.int64], tables: Tables) -> pl.DataFrame:
    """Return features of each row's turn, its text, neighbours, place, and speaker; ``said``, ``here``: ``nearby``."""
    plain = said.with_columns(
        pl.col("text").str.count_matches(r"\w+").log1p().alias("words"),
        pl.col("text").str.strip_chars_end().str.ends_with("?").alias("ends with ?"),
        pl.col("text").str.count_matches(r"[a-z,;] [A-Z][a-z]").log1p().alias("names"),
        (pl.col("role") == "assistant").alias("assistant"),
        *(pl.col("text").str.contains(pattern).alias(name) for name, pattern in FLAGS.items()),
        (pl.col("text").str.count_matches(FLAGS["first person"]) / (1 + pl.col("text").str.count_matches(r"\w+"))
         ).alias("i share"),
        (pl.col("place") / (pl.col("size") - 1).clip(1)).alias("place share"),
        pl.col("place").log1p().alias("place"), pl.col("size").log1p().alias("session size"),
    )
    for step in (-1, 1):
        near = plain.select(*SESSION, pl.col("turn") - step, *(pl.col(name).alias(f"{name} {step:+}") for name in NEAR))
        plain = plain.join(near, on=[*SESSION, "turn"], how="left", maintain_order="left")
    kept = [c for c in plain.columns if c not in (*SESSION, "turn", "role", "speaker", "text_id", "text", "size")]
    plain = plain.with_columns(pl.col("speaker").str.to_lowercase().str.extract(r"^(\w+)").alias("\0name"))
    rows = plain[here].with_columns(head["question"])
    questions = with_text(tables["questions"], tables["texts"]).select(
        "question", pl.col("text").fill_null("").str.to_lowercase().alias("\0asked")).with_columns(
        (pl.col("\0asked").str.count_matches(r"\b(?:and|both)\b") > 0).alias("\0others"))
    rows = rows.join(questions, on="question", how="left", maintain_order="left")
    named = pl.col("\0asked").str.contains(pl.col("\0name"), literal=True)
    return rows.select(*kept, named.cast(pl.Float64).alias("speaker named"),
                       (named & pl.col("\0others")).cast(pl.Float64).alias("speaker named, and"))


def question_features(head: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Return features of each row's question: the words that it asks with, and its length."""
    asked = with_text(tables["questions"], tables["texts"]).with_columns(
        pl.col("text").fill_null("").str.to_lowercase().alias("lower"))
    made = asked.select(
        "question", *(pl.col("lower").str.contains(rf"\b{word}\b").alias(f"asks {word}") for word in QUESTION_WORDS),
        pl.col("lower").str.count_matches(r"\w+").log1p().alias("question words"),
        pl.col("lower").str.contains(r"\b(?:i|my|me|we)\b").alias("question in first person"),
        pl.col("lower").str.contains(r"\b(?:first|earliest|before|initially)\b").alias("asks the first"),
        pl.col("lower").str.contains(r"\b(?:last|latest|current(?:ly)?|now|most recent(?:ly)?)\b").alias(
            "asks the last"),
        pl.col("lower").str.contains(r"\b(?:you|your)\b").alias("question to the assistant"),
        pl.col("lower").str.contains(r"\b(?:recommend|suggest|tips|advice|ideas)").alias("asks advice"),
        pl.col("lower").str.contains(r"\b(?:days?|weeks?|months?|years?|date|time)\b").alias("asks time"),
    )
    return head.select("question").join(made, on="question", how="left", maintain_order="left").drop("question")
