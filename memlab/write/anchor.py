"""Dates and pronouns in memories, resolved by rules and appended to the text.

The words stay as they are. Each technique appends one line, which a search finds and a reader sees:
``[last Friday = 2023-05-19; yesterday = 2023-05-23]``. A memory with nothing to resolve stays unchanged, and a second
pass changes nothing. Values are shown only where memories are ranked (``rank.score.level=memory``); turns and sessions
are shown without notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Annotated, ClassVar, Literal

import polars as pl
from pydantic import Field

from memlab.stage import stage
from memlab.store import Store
from memlab.tables import SESSION, Tables, add_texts, with_text
from memlab.text.temporal.resolve import TRIGGER, find_expressions
from memlab.write.coreference import WORDS, resolve_pronouns

Into = Literal["key", "key_and_value"]
_NOTES = re.compile(r"(?:\n\[[^\[\]\n]+ = [^\[\]\n]+\])+\Z")


@stage
class ResolveDates:
    """Append the ISO form of relative dates and times, counted from the day of the memory (``said_on``).

    The conventions are those of ``temporal.resolve``. ``happened_on`` becomes the first single day in the key that is
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
    notes = _NOTES.search(text) if text.endswith("]") else None
    return (text[: notes.start()], notes[0]) if notes else (text, "")


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


@stage
class ResolvePronouns:
    """Append the persons that pronouns mean, by ``memlab.write.coreference``: ``[she = Julia; you = Bob]``.

    A memory gets the pronouns of its turns that are in its text and mean a single person whom the text does not name.
    """

    reads: ClassVar = ("texts", "turns", "memories")
    writes: ClassVar = ("memories", "texts")
    into: Into = "key_and_value"  # values are shown only with rank.score.level=memory
    reach: Annotated[int, Field(ge=0)] = 3  # turns after which a person is forgotten; later, another is often meant
    speakers: bool = True  # resolve "I" and "you" too, where speakers have names

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return the memories with their pronouns resolved."""
        memories, texts = tables["memories"], tables["texts"]
        persons = self._persons(tables)
        for column in ("key_id", "value_id") if self.into == "key_and_value" else ("key_id",):
            rows = with_text(memories, texts, column).select("text", *SESSION, "turns")
            notes = [_pronoun_note(split_notes(text)[0], [persons.get((corpus, session, turn), {}) for turn in turns])
                     for text, corpus, session, turns in rows.iter_rows()]
            memories, texts = append_notes(memories, texts, column, pl.Series(notes, dtype=pl.String))
        return Tables(memories=memories, texts=texts)

    def _persons(self, tables: Tables) -> dict[tuple[int, int, int], dict[str, str]]:
        """Return the persons that the pronouns of each turn mean; each distinct session is read once."""
        sessions = with_text(tables["turns"], tables["texts"]).sort(*SESSION, "turn").group_by(
            SESSION, maintain_order=True).agg("turn", "speaker", "text")
        resolve = cache(lambda turns: resolve_pronouns(turns, self.reach))
        persons_of = {}
        for corpus, session, turns, speakers, texts in sessions.iter_rows():
            for turn, persons in zip(turns, resolve(tuple(zip(speakers, texts)))):
                persons_of[corpus, session, turn] = persons if self.speakers else {
                    pronoun: name for pronoun, name in persons.items() if pronoun not in ("I", "you")}
        return persons_of


def _pronoun_note(text: str, turns: Sequence[dict[str, str]]) -> str | None:
    """Return the note on the pronouns in a text, if the turns agree and the text does not name the person."""
    names: dict[str, set[str]] = {}
    for persons in turns:
        for pronoun, name in persons.items():
            names.setdefault(pronoun, set()).add(name)
    agreed = {pronoun: several.pop() for pronoun, several in names.items() if len(several) == 1}
    return note((pronoun, name) for pronoun, name in agreed.items()
                if WORDS[pronoun].search(text) and not re.search(rf"\b{re.escape(name)}\b", text))


@stage
class ResolveBoth:
    """Append the persons of pronouns, then dates: the write side of OltraMem."""

    reads: ClassVar = ("texts", "turns", "memories")
    writes: ClassVar = ("memories", "texts")
    coref: ResolvePronouns = Field(default_factory=ResolvePronouns)
    dates: ResolveDates = Field(default_factory=ResolveDates)

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the memories with pronouns and dates resolved."""
        return self.dates.run(tables.updated(self.coref.run(tables, store)), store)
