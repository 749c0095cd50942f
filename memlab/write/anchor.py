"""What a memory says by pointing, said outright: dates and persons resolved by rules, appended to what was said.

The words stay as they are. What they stand for is appended as one line a technique, so that a search finds it and a
reader sees how it was understood: ``[last Friday = 2023-05-19; yesterday = 2023-05-23]``. Nothing to resolve leaves a
memory untouched, and anchoring twice changes nothing. Values are shown only where memories are ranked
(``rank.score.level=memory``); turns and sessions are shown as they were said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, ClassVar, Literal

import polars as pl
from pydantic import Field

from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables, add_texts, with_text
from memlab.text.temporal.resolve import TRIGGER, Found, found
from memlab.write.coreference import WORDS, resolved

_SESSION = ["corpus", "session"]
Into = Literal["key", "key_and_value"]
_NOTES = re.compile(r"(?:\n\[[^\[\]\n]+ = [^\[\]\n]+\])+\Z")


@stage
class Dates:
    """Append the ISO form of relative dates and times, told from the day on which a memory was said.

    The weekday rules and all other conventions are those of ``temporal.resolve``. ``happened_on`` becomes the first
    day in the key on which something happened: a single one, not later than that of speaking; what is known only to the
    week, month or year ("last month" = 2023-04) is appended but sets no ``happened_on``, and neither does a mere end
    ("until Friday"). ``said_on`` stays: a memory has both dates. One that has a ``happened_on`` keeps it.
    """

    reads: ClassVar = ("texts", "memories")
    writes: ClassVar = ("memories", "texts")
    # the key is searched; the value is shown where memories are ranked (rank.score.level=memory)
    into: Into = "key_and_value"

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return the memories, anchored."""
        memories, texts = tables["memories"], tables["texts"]
        keys = memories.select(pl.col("key_id").alias("text_id"), "said_on")
        told = keys.join(_resolved(keys, texts), on=["text_id", "said_on"], how="left", maintain_order="left")
        made, texts = appended(memories, texts, "key_id", told["note"])
        if self.into == "key_and_value":
            made, texts = appended(made, texts, "value_id", _values(memories, texts, told["note"]))
        return Tables(memories=made.with_columns(pl.coalesce("happened_on", told["day"]).alias("happened_on")),
                      texts=texts)


def _resolved(said: pl.DataFrame, texts: pl.DataFrame) -> pl.DataFrame:
    """Resolve each text once a moment at which it is said: text_id, said_on, note (or null), day (or null)."""
    wanted = said.unique(maintain_order=True).drop_nulls()
    # most lines name no time, and polars finds those that may a hundred times as fast as Python
    some = texts.join(wanted, on="text_id", how="semi").with_columns(
        pl.col("text").map_elements(lambda t: body(t)[0], return_dtype=pl.String))
    lines = some.with_columns(pl.col("text").str.split("\n")).explode("text").filter(
        pl.col("text").str.contains(TRIGGER)).group_by("text_id", maintain_order=True).agg("text")
    rows = []
    for name, day, line in wanted.join(lines, on="text_id", maintain_order="left").iter_rows():
        told = found("\n".join(line), day)
        rows.append((name, day, noted((f.words, f.form) for f in told if f.form not in f.words), _day(told)))
    return pl.DataFrame(rows, orient="row", schema={
        "text_id": pl.String, "said_on": pl.Datetime("us"), "note": pl.String, "day": pl.Datetime("us")})


def _values(memories: pl.DataFrame, texts: pl.DataFrame, notes: pl.Series) -> pl.Series:
    """Return the notes of the values; a value that ends with its key ("Ann: " and the key) has the key's."""
    both = with_text(with_text(memories, texts, "key_id", "key"), texts, "value_id", "value")
    same = both.select(pl.col("value").str.ends_with(pl.col("key")).fill_null(False)).to_series()
    rows = memories.select(pl.col("value_id").alias("text_id"), "said_on")
    known = _resolved(rows.filter(~same), texts).rename({"note": "own"})
    others = rows.with_columns(notes.alias("note")).join(
        known, on=["text_id", "said_on"], how="left", maintain_order="left")
    return others.select(pl.when(same).then("note").otherwise("own").alias("note"))["note"]


def _day(told: list[Found]) -> datetime | None:
    day = next((f.day for f in told if f.day), None)
    return datetime(day.year, day.month, day.day) if day else None


def body(text: str) -> tuple[str, str]:
    r"""Split a text from the notes appended to it.

    >>> body("It broke yesterday\n[yesterday = 2023-05-19]")
    ('It broke yesterday', '\n[yesterday = 2023-05-19]')
    """
    notes = _NOTES.search(text) if text.endswith("]") else None
    return (text[: notes.start()], notes[0]) if notes else (text, "")


def noted(pairs: Iterable[tuple[str, str]]) -> str | None:
    """Write what words stand for as one line, each pair once; None where there is nothing to say."""
    told = dict.fromkeys(f"{' '.join(words.split())} = {form}" for words, form in pairs)
    return f"\n[{'; '.join(told)}]" if told else None


def appended(memories: pl.DataFrame, texts: pl.DataFrame, column: str, notes: pl.Series) -> tuple[
        pl.DataFrame, pl.DataFrame]:
    """Append notes (one a memory, or null) to the texts of a column, where they are not there already."""
    rows = memories.select(pl.col(column).alias("text_id"), pl.Series("note", notes, dtype=pl.String))
    pairs = with_text(rows.drop_nulls().unique(maintain_order=True), texts)
    ids, texts = add_texts(texts, [text if note in body(text)[1] else text + note
                                   for note, text in pairs.select("note", "text").iter_rows()])
    new = rows.join(pairs.select("text_id", "note", ids.alias("new")), on=["text_id", "note"], how="left",
                    maintain_order="left")
    return memories.with_columns(new.select(pl.coalesce("new", "text_id").alias(column))[column]), texts


@stage
class Coref:
    """Append whom pronouns mean, by the rules of ``memlab.write.coreference``: ``[she = Julia; you = Bob]``.

    A memory is told of the turns that it names. A pronoun that means several people in them is left alone, and so is
    one that its text does not hold, or whose person its text names already. ``reach``: a person named more turns ago is
    forgotten. ``speakers``: "I" and "you" too, where speakers have names.
    """

    reads: ClassVar = ("texts", "turns", "memories")
    writes: ClassVar = ("memories", "texts")
    # the key is searched; the value is shown where memories are ranked (rank.score.level=memory)
    into: Into = "key_and_value"
    # turns after which a person is forgotten: further back, the last named is often another
    reach: Annotated[int, Field(ge=0)] = 3
    speakers: bool = True  # "I" and "you" too, where speakers have names

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return the memories, with their persons told."""
        made, texts = tables["memories"], tables["texts"]
        meant = self._meant(tables)
        for column in ("key_id", "value_id") if self.into == "key_and_value" else ("key_id",):
            said = with_text(made, texts, column).select("text", *_SESSION, "turns")
            notes = [_persons(body(text)[0], [meant.get((corpus, session, turn), {}) for turn in turns])
                     for text, corpus, session, turns in said.iter_rows()]
            made, texts = appended(made, texts, column, pl.Series(notes, dtype=pl.String))
        return Tables(memories=made, texts=texts)

    def _meant(self, tables: Tables) -> dict[tuple[int, int, int], dict[str, str]]:
        """Return whom the pronouns of each turn mean; a session that lies in many haystacks is read once."""
        sessions = with_text(tables["turns"], tables["texts"]).sort(*_SESSION, "turn").group_by(
            _SESSION, maintain_order=True).agg("turn", "speaker", "text")
        known: dict[tuple[tuple[str | None, str], ...], list[dict[str, str]]] = {}
        out = {}
        for corpus, session, turns, speakers, texts in sessions.iter_rows():
            lines = tuple(zip(speakers, texts))
            if lines not in known:
                known[lines] = resolved(lines, self.reach)
            for turn, said in zip(turns, known[lines]):
                out[corpus, session, turn] = said if self.speakers else {
                    word: whom for word, whom in said.items() if word not in ("I", "you")}
        return out


def _persons(text: str, meant: list[dict[str, str]]) -> str | None:
    """Note whom the pronouns in a text mean, if the turns agree and the text does not say."""
    whom: dict[str, set[str]] = {}
    for said in meant:
        for word, name in said.items():
            whom.setdefault(word, set()).add(name)
    sure = {word: names.pop() for word, names in whom.items() if len(names) == 1}
    return noted((word, name) for word, name in sure.items()
                 if WORDS[word].search(text) and not re.search(rf"\b{re.escape(name)}\b", text))


@stage
class Both:
    """Append whom pronouns mean, then what dates mean: the write side of OltraMem."""

    reads: ClassVar = ("texts", "turns", "memories")
    writes: ClassVar = ("memories", "texts")
    coref: Coref = Field(default_factory=Coref)
    dates: Dates = Field(default_factory=Dates)

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the memories, with persons and dates told."""
        return self.dates.run(tables.updated(self.coref.run(tables, store)), store)
