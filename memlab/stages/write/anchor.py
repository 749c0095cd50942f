"""Dates in memories, resolved by rules and appended to the text, and the form of such notes.

The words stay as they are. A technique appends one line, which a search finds and a reader sees:
``[last Friday = 2023-05-19; yesterday = 2023-05-23]``. A memory with nothing to resolve stays unchanged, and a second
pass changes nothing. Values are shown only where memories are ranked (``rank.score.level=memory``); turns and sessions
are shown without notes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

import polars as pl

from memlab.pipeline.stage import stage
from memlab.pipeline.tables import Tables, add_texts, with_text
from memlab.store import Store
from memlab.support.text.temporal.resolve import TRIGGER, find_expressions

Into = Literal["key", "key_and_value"]

@stage
class ResolveDates:
    """Append the ISO form of relative dates and times, counted from the day of the memory (``said_on``).

    ``temporal.resolve`` has the conventions. ``happened_on`` becomes the first single day in the key that is
    not later than ``said_on``. Weeks, months and years ("last month" = 2023-04) are appended, but they set no
    ``happened_on``; neither does an end ("until Friday"). A memory that has a ``happened_on`` keeps it.
    """

    reads: ClassVar = ("texts", "memories")
    writes: ClassVar = ("memories", "texts")
    into: Into = "key_and_value"  # values are shown only with rank.score.level=memory

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return the memories with their dates resolved."""
        memories, texts = tables["memories"], tables["texts"]
        keys = memories.select(pl.col("key_id").alias("text_id"), "said_on")
        resolved = keys.join(_resolve(keys, texts), on=["text_id", "said_on"], how="left", maintain_order="left")
        longer, texts = append_notes(memories, texts, "key_id", resolved["note"])
        if self.into == "key_and_value":
            longer, texts = append_notes(longer, texts, "value_id", _value_notes(memories, texts, resolved["note"]))
        return Tables(memories=longer.with_columns(pl.coalesce("happened_on", resolved["day"]).alias("happened_on")),
                      texts=texts)


def _resolve(dated: pl.DataFrame, texts: pl.DataFrame) -> pl.DataFrame:
    """Resolve each text once per date: text_id, said_on, note (or null), day (or null)."""
    distinct = dated.unique(maintain_order=True).drop_nulls()
    # few lines name a time, and polars finds the candidates a hundred times as fast as Python
    bodies = texts.join(distinct, on="text_id", how="semi").with_columns(
        pl.col("text").map_elements(lambda text: split_notes(text)[0], return_dtype=pl.String))
    lines = bodies.with_columns(pl.col("text").str.split("\n")).explode("text").filter(
        pl.col("text").str.contains(TRIGGER)).group_by("text_id", maintain_order=True).agg("text")
    rows = []
    for text_id, said_on, candidates in distinct.join(lines, on="text_id", maintain_order="left").iter_rows():
        times = find_expressions("\n".join(candidates), said_on)
        rows.append((text_id, said_on, note((time.text, time.value) for time in times if time.value not in time.text),
                     next((time.day for time in times if time.day), None)))
    return pl.DataFrame(rows, orient="row", schema={
        "text_id": pl.String, "said_on": pl.Datetime("us"), "note": pl.String, "day": pl.Date,
    }).with_columns(pl.col("day").cast(pl.Datetime("us")))


def _value_notes(memories: pl.DataFrame, texts: pl.DataFrame, key_notes: pl.Series) -> pl.Series:
    """Return the notes of the values; a value that ends with its key ("Ann: " and the key) gets the key's."""
    both = with_text(with_text(memories, texts, "key_id", "key"), texts, "value_id", "value")
    same = both.select(pl.col("value").str.ends_with(pl.col("key")).fill_null(False)).to_series()
    values = memories.select(pl.col("value_id").alias("text_id"), "said_on")
    others = values.join(_resolve(values.filter(~same), texts), on=["text_id", "said_on"], how="left",
                         maintain_order="left")
    return others.select(pl.when(same).then(key_notes.alias("note")).otherwise("note").alias("note")).to_series()


def split_notes(text: str) -> tuple[str, str]:
    r"""Split a text into its body and the notes appended to it.

    >>> split_notes("It broke yesterday\n[yesterday = 2023-05-19]")
    ('It broke yesterday', '\n[yesterday = 2023-05-19]')
    """
    at = len(text)
    while (start := text.rfind("\n", 0, at)) >= 0 and _is_note(text[start + 1 : at]):
        at = start
    return text[:at], text[at:]


def _is_note(line: str) -> bool:
    inside = line[1:-1]
    return line[:1] == "[" and line[-1:] == "]" and " = " in inside[1:-1] and not {"[", "]"} & {*inside}


def note(pairs: Iterable[tuple[str, str]]) -> str | None:
    """Format (words, meaning) pairs as one line, each pair once; return None without pairs."""
    parts = dict.fromkeys(f"{' '.join(words.split())} = {meaning}" for words, meaning in pairs)
    return f"\n[{'; '.join(parts)}]" if parts else None


def append_notes(memories: pl.DataFrame, texts: pl.DataFrame, column: str, notes: pl.Series) -> tuple[
        pl.DataFrame, pl.DataFrame]:
    """Append notes (n,), one or null per memory, to the texts of a column; a note that is there is not repeated."""
    rows = memories.select(pl.col(column).alias("text_id"), pl.Series("note", notes, dtype=pl.String))
    pairs = with_text(rows.drop_nulls().unique(maintain_order=True), texts)
    ids, texts = add_texts(texts, [text if line in split_notes(text)[1] else text + line
                                   for line, text in pairs.select("note", "text").iter_rows()])
    new = rows.join(pairs.select("text_id", "note", ids.alias("new")), on=["text_id", "note"], how="left",
                    maintain_order="left")
    return memories.with_columns(new.select(pl.coalesce("new", "text_id").alias(column))[column]), texts
