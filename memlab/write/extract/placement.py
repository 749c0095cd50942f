"""Placement of facts: beside the raw memories, in their place, or in their keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import polars as pl

from memlab.errors import MemlabError
from memlab.stage import stage
from memlab.tables import SCHEMAS, SESSION, Tables, add_texts, with_text
from memlab.text.transcript import TURN_SEPARATOR
from memlab.write.chunk.turns import memories
from memlab.write.extract.base import Extract, Talk, name_tables
from memlab.write.extract.chunked import HEADER, Chunked, chunks

KIND = "fact"
"""The kind of a fact's memory: its lanes are dense:fact and lexical:fact."""

Into = Literal["keys", "replace", "merge"]

_TEXT = pl.String()
_DAY = "[%Y-%m-%d] "


@stage
class Extractor:
    """Base of the extractors: settings, and the placement of the facts of each distinct session.

    * ``keys``: each fact is a further memory; its key is the fact, its value the lines of its turns.
    * ``replace``: a fact is key and value, or the facts of a session are joined and cut (``chunked``). Sessions without
      facts and unread turns keep their raw memories, which then count as facts.
    * ``merge``: a fact is appended to the key of each raw memory with one of its turns.
    """

    reads: ClassVar = ("texts", "sessions", "turns", "memories")
    writes: ClassVar = ("memories", "texts", "entities", "links")

    into: Into = "keys"  # keys: further memories; replace: instead of the raw memories; merge: into their keys
    dated: bool = True  # [YYYY-MM-DD] of the session before the fact in the key; readers see the day anyway
    chunked: Chunked | None = None  # chunks of facts, only with into: replace

    def __post_init__(self) -> None:
        if self.chunked is not None and self.into != "replace":
            raise MemlabError("facts are cut into chunks only where they replace the memories, not with "
                              f"into={self.into}", where="write.extract.chunked",
                              fix="set into: replace, or chunked: null")

    def place(self, tables: Tables, talks: Sequence[Talk], places: pl.DataFrame, extracts: Sequence[Extract]) -> Tables:
        """Return memories, texts, entities and links with the extracts of the distinct sessions in all their places."""
        rows = _fact_rows(talks, places, extracts)
        day = pl.col("said_on").dt.strftime(_DAY).fill_null("") if self.dated else pl.lit("")
        rows = rows.with_columns((day + pl.col("fact")).alias("key"))
        raw = tables["memories"]
        if self.into == "merge":
            out = _append_to_keys(tables, rows)
        elif self.into == "keys":
            out = memories(rows.rename({"lines": "value"}), KIND, tables)
            out = out.updated({"memories": pl.concat([raw, out["memories"]])})
        else:
            facts = rows.rename({"fact": "value"}) if self.chunked is None else _chunks(rows, self.chunked)
            out = memories(facts, KIND, tables)
            kept = _memories_without_facts(raw, places, extracts)
            out = out.updated({"memories": pl.concat([out["memories"], kept]).sort(SESSION, maintain_order=True)})
        number = pl.int_range(pl.len(), dtype=pl.Int64).alias("memory")
        return out.updated({"memories": out["memories"].with_columns(number), **name_tables(places, extracts)})


def _fact_rows(talks: Sequence[Talk], places: pl.DataFrame, extracts: Sequence[Extract]) -> pl.DataFrame:
    """Return one row per fact and place: corpus, session, said_on, turns (numbers), fact, lines, category, source."""
    rows = [(i, f.text, TURN_SEPARATOR.join(talks[i][p].line for p in f.turns), [*f.turns], f.category, f.source)
            for i, extract in enumerate(extracts) for f in extract.facts]
    facts = pl.DataFrame(rows, orient="row", schema={
        "talk": pl.Int32(), "fact": _TEXT, "lines": _TEXT, "at": pl.List(pl.Int32), "category": _TEXT, "source": _TEXT})
    return places.join(facts, on="talk", maintain_order="left_right").with_columns(
        pl.col("numbers").list.gather(pl.col("at")).alias("turns")).drop("numbers", "talk", "at")


def _chunks(rows: pl.DataFrame, cut: Chunked) -> pl.DataFrame:
    """Cut the facts of each session, one per line, into chunks under a header; a chunk has no category."""
    chunk_rows = []
    for *place, said_on, keys, turns, sources in rows.group_by([*SESSION, "said_on"], maintain_order=True).agg(
            "key", "turns", "source").iter_rows():
        head = said_on.strftime(HEADER) if said_on is not None else ""
        for text, at in chunks(keys, cut):
            who = {sources[i] for i in at}
            chunk_rows.append((*place, sorted({t for i in at for t in turns[i]}), head + text, head + text, None,
                        who.pop() if len(who) == 1 else "conversation"))
    return pl.DataFrame(chunk_rows, orient="row", schema={
        **{c: SCHEMAS["memories"][c] for c in (*SESSION, "turns")}, "key": _TEXT, "value": _TEXT, "category": _TEXT,
        "source": _TEXT})


def _memories_without_facts(raw: pl.DataFrame, places: pl.DataFrame, extracts: Sequence[Extract]) -> pl.DataFrame:
    """Return the raw memories, of one chunking, of sessions without facts and of unread turns."""
    missing = pl.DataFrame({"empty": [not extract.facts for extract in extracts],
                            "unread": [[*extract.unread] for extract in extracts]},
                           schema={"empty": pl.Boolean, "unread": pl.List(pl.Int32)})
    sessions = pl.concat([places, missing[places["talk"]]], how="horizontal").select(
        *SESSION, "empty", pl.col("numbers").list.gather(pl.col("unread")).alias("unread"))
    kept = raw.join(sessions, on=SESSION, how="left", maintain_order="left").filter(
        pl.col("empty").fill_null(True) | (pl.col("turns").list.set_intersection("unread").list.len() > 0))
    first = pl.col("kind") == pl.col("kind").first().over(SESSION)  # several chunkings would repeat everything
    return kept.filter(first).with_columns(pl.lit(KIND).alias("kind")).select(raw.columns)


def _append_to_keys(tables: Tables, rows: pl.DataFrame) -> Tables:
    """Append facts, in order, to the keys of the memories with one of their turns."""
    place = [*SESSION, "turns"]
    facts = rows.select(*place, "key").with_row_index("fact").explode("turns")
    pairs = tables["memories"].select("memory", *place).explode("turns").join(facts, on=place).select(
        "memory", "fact", "key").unique(["memory", "fact"]).sort("memory", "fact")
    more = pairs.group_by("memory", maintain_order=True).agg(pl.col("key").str.join("\n").alias("more"))
    keys = with_text(tables["memories"], tables["texts"], "key_id").join(
        more, on="memory", how="left", maintain_order="left").select(
        pl.concat_str("text", "more", separator="\n", ignore_nulls=True)).to_series()
    ids, texts = add_texts(tables["texts"], keys)
    return Tables(memories=tables["memories"].with_columns(ids.alias("key_id")), texts=texts)
