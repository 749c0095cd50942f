"""Placement of facts: beside the raw memories, in their place, or in their keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import polars as pl

from memlab.errors import MemlabError
from memlab.tables import SCHEMAS, SESSION, Tables, add_texts, with_text
from memlab.text.transcript import TURN_SEPARATOR
from memlab.write.chunk.turns import memories
from memlab.write.extract.base import Extract, Talk, named, talks
from memlab.write.extract.chunked import HEADER, Chunked, chunks

READS = ("texts", "sessions", "turns", "memories")
WRITES = ("memories", "texts", "entities", "links")
KIND = "fact"
"""The kind of memory that a fact is: its lanes are dense:fact and lexical:fact."""

Into = Literal["keys", "replace", "merge"]

_TEXT = pl.String()
_DAY = "[%Y-%m-%d] "


def check(into: Into, chunked: Chunked | None) -> None:
    """Raise MemlabError if facts are to be chunked that do not stand alone."""
    if chunked is not None and into != "replace":
        raise MemlabError(f"facts are cut into chunks only where they replace the memories, not with into={into}",
                          where="write.extract.chunked", fix="set into: replace, or chunked: null")


def written(tables: Tables, extract: Callable[[list[Talk]], Sequence[Extract]], into: Into, dated: bool,
            chunked: Chunked | None) -> Tables:
    """Write what ``extract`` makes of each distinct session into all slots that hold it; WRITES from READS.

    * ``keys``: a fact is a memory more; its key is the fact, its value the lines of its turns.
    * ``replace``: a fact is key and value, or the facts of a session are cut into ``chunked`` ones. A session without
      facts, and turns that could not be read, keep their raw memories, which then count as facts.
    * ``merge``: a fact is appended to the key of every raw memory that names one of its turns.

    ``dated`` puts the session's day before the fact in the key; the reader is shown the day of every memory anyway.
    """
    known, slots = talks(tables)
    found = extract(known)
    rows = _rows(known, slots, found)
    day = pl.col("said_on").dt.strftime(_DAY).fill_null("") if dated else pl.lit("")
    rows = rows.with_columns((day + pl.col("fact")).alias("key"))
    raw = tables["memories"]
    if into == "merge":
        made = _merged(tables, rows)
    elif into == "keys":
        made = _as_memories(rows.rename({"lines": "value"}), tables)
        made = made.updated({"memories": pl.concat([raw, made["memories"]])})
    else:
        cut = rows.rename({"fact": "value"}) if chunked is None else _chunks(rows, chunked)
        made = _as_memories(cut, tables)
        kept = _kept(raw, slots, found)
        made = made.updated({"memories": pl.concat([made["memories"], kept]).sort(SESSION, maintain_order=True)})
    number = pl.int_range(pl.len(), dtype=pl.Int64).alias("memory")
    return made.updated({"memories": made["memories"].with_columns(number), **named(slots, found)})


def _rows(known: Sequence[Talk], slots: pl.DataFrame, found: Sequence[Extract]) -> pl.DataFrame:
    """Return one row per fact and slot: corpus, session, said_on, turns (numbers), fact, lines, category, source."""
    facts = [(talk, f.text, TURN_SEPARATOR.join(known[talk][p].line for p in f.turns), [*f.turns], f.category, f.source)
             for talk, one in enumerate(found) for f in one.facts]
    made = pl.DataFrame(facts, orient="row", schema={
        "talk": pl.Int32(), "fact": _TEXT, "lines": _TEXT, "at": pl.List(pl.Int32), "category": _TEXT, "source": _TEXT})
    return slots.join(made, on="talk", maintain_order="left_right").with_columns(
        pl.col("numbers").list.gather(pl.col("at")).alias("turns")).drop("numbers", "talk", "at")


def _as_memories(rows: pl.DataFrame, tables: Tables) -> Tables:
    made = memories(rows, KIND, tables)
    return made.updated({"memories": made["memories"].with_columns(rows["category"], rows["source"])})


def _chunks(rows: pl.DataFrame, cut: Chunked) -> pl.DataFrame:
    """Cut each slot's facts, a line each, into chunks under a header; a chunk has no one category."""
    out = []
    for *place, said_on, keys, turns, sources in rows.group_by([*SESSION, "said_on"], maintain_order=True).agg(
            "key", "turns", "source").iter_rows():
        head = said_on.strftime(HEADER) if said_on is not None else ""
        for text, at in chunks(keys, cut):
            who = {sources[i] for i in at}
            out.append((*place, sorted({t for i in at for t in turns[i]}), head + text, head + text, None,
                        who.pop() if len(who) == 1 else "conversation"))
    return pl.DataFrame(out, orient="row", schema={
        **{c: SCHEMAS["memories"][c] for c in (*SESSION, "turns")}, "key": _TEXT, "value": _TEXT, "category": _TEXT,
        "source": _TEXT})


def _kept(raw: pl.DataFrame, slots: pl.DataFrame, found: Sequence[Extract]) -> pl.DataFrame:
    """Return the raw memories, of one chunking, of sessions without facts and those that name an unread turn."""
    silent = pl.Series([not one.facts for one in found], dtype=pl.Boolean)
    unread = pl.Series([[*one.unread] for one in found], dtype=pl.List(pl.Int32))
    lost = slots.with_columns(silent.gather(slots["talk"]).alias("silent"),
                              unread.gather(slots["talk"]).alias("unread")).select(
        *SESSION, "silent", pl.col("numbers").list.gather(pl.col("unread")).alias("lost"))
    kept = raw.join(lost, on=SESSION, how="left", maintain_order="left").filter(
        pl.col("silent").fill_null(True) | (pl.col("turns").list.set_intersection("lost").list.len() > 0))
    first = pl.col("kind") == pl.col("kind").first().over(SESSION)  # several chunkings would say everything twice
    return kept.filter(first).with_columns(pl.lit(KIND).alias("kind")).select(raw.columns)


def _merged(tables: Tables, rows: pl.DataFrame) -> Tables:
    """Append facts, in order, to the keys of the memories that name one of their turns."""
    place = [*SESSION, "turns"]
    told = rows.select(*place, "key").with_row_index("fact").explode("turns")
    held = tables["memories"].select("memory", *place).explode("turns").join(told, on=place).select(
        "memory", "fact", "key").unique(["memory", "fact"]).sort("memory", "fact")
    more = held.group_by("memory", maintain_order=True).agg(pl.col("key").str.join("\n").alias("more"))
    keys = with_text(tables["memories"], tables["texts"], "key_id").join(
        more, on="memory", how="left", maintain_order="left").select(
        pl.concat_str("text", "more", separator="\n", ignore_nulls=True)).to_series()
    ids, texts = add_texts(tables["texts"], keys)
    return Tables(memories=tables["memories"].with_columns(ids.alias("key_id")), texts=texts)
