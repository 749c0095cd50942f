"""Facts, entities and links of a session, and the places of facts among the memories.

Benchmarks repeat a session in several haystacks, under other dates. Each distinct session is extracted once, without
its date, and its extract is written for each place of the session in a haystack.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, NamedTuple

import polars as pl
from pydantic import Field

from memlab.pipeline.stage import stage
from memlab.pipeline.tables import SCHEMAS, SESSION, Notes, Tables, add_texts, with_text
from memlab.pipeline.transcript import TURN_SEPARATOR, render_turns
from memlab.stages.write.chunk import memories
from memlab.store import Store
from memlab.support.errors import MemlabError

Category = Literal["preference", "date", "amount", "count", "event", "other"]
Source = Literal["user", "assistant"]
Kind = Literal["person", "organization", "location", "object"]


class SpokenTurn(NamedTuple):
    """A turn of a session: the role and name (or None) of the speaker, the raw text, and the line that shows both."""

    role: Source
    speaker: str | None
    text: str
    line: str

    @property
    def name(self) -> str:
        """The speaker's name, else the role."""
        return self.speaker or self.role


Talk = tuple[SpokenTurn, ...]
"""The turns of a session, in order."""


class ExtractedFact(NamedTuple):
    """A sentence that is understood by itself; ``turns`` are positions (from 0) in its session, ascending."""

    text: str
    turns: tuple[int, ...]
    category: Category
    source: Source


class Entity(NamedTuple):
    """A person, place, organisation or thing that a session names, with a summary."""

    name: str
    kind: Kind
    summary: str


class Link(NamedTuple):
    """A relationship between two names; ``when`` is in the words of the session, or None."""

    source: str
    relation: str
    target: str
    when: str | None = None


class Extract(NamedTuple):
    """The extract of a session; ``unread`` are the positions of turns without a readable reply."""

    facts: tuple[ExtractedFact, ...] = ()
    entities: tuple[Entity, ...] = ()
    links: tuple[Link, ...] = ()
    unread: tuple[int, ...] = ()


def distinct_talks(tables: Tables) -> tuple[list[Talk], pl.DataFrame]:
    """Return the distinct sessions, and the place of each session in a haystack.

    Places: corpus, session, said_on, numbers (the turns' numbers, by position), talk (index of the distinct session).
    """
    lines = render_turns(tables["turns"], tables["texts"]).group_by(SESSION, maintain_order=True).agg(
        pl.col("turn").alias("numbers"), "role", "speaker", "text", "display_text")
    index: dict[Talk, int] = {}
    talk = [index.setdefault(tuple(map(SpokenTurn, *turns)), len(index))
            for turns in lines.select("role", "speaker", "text", "display_text").iter_rows()]
    places = lines.select(*SESSION, "numbers").with_columns(pl.Series("talk", talk, pl.Int32))
    return list(index), places.join(tables["sessions"], on=SESSION, how="left", maintain_order="left").select(
        *SESSION, "said_on", "numbers", "talk")


def name_tables(places: pl.DataFrame, extracts: Sequence[Extract]) -> dict[str, pl.DataFrame]:
    """Return the tables ``entities`` and ``links``, with the names of each distinct session in all its places."""
    def place_rows(columns: Sequence[str], rows: Sequence[Sequence[tuple[str | None, ...]]]) -> pl.DataFrame:
        table = pl.DataFrame([(talk, *row) for talk, own in enumerate(rows) for row in own], orient="row",
                             schema={"talk": pl.Int32, **dict.fromkeys(columns, pl.String)})
        return places.join(table, on="talk", maintain_order="left_right")

    entities = place_rows(Entity._fields, [extract.entities for extract in extracts])
    links = place_rows(Link._fields, [extract.links for extract in extracts])
    # only a full date counts; for other words of time the session's day stands
    day = pl.col("when").str.extract(r"\b(\d{4}-\d{2}-\d{2})\b").str.to_datetime(
        "%Y-%m-%d", strict=False, time_unit="us")
    return {"entities": entities.select(list(SCHEMAS["entities"])),
            "links": links.with_columns(pl.coalesce(day, "said_on").alias("said_on")).select(list(SCHEMAS["links"]))}


Span = tuple[int, int]

HEADER = "# Memories from %Y-%m-%d\n"
"""The line above each chunk of a dated session."""

_BREAKS = tuple(re.compile(p) for p in (r"[.!?\u3002\uff01\uff1f][\"')\]]*(?:\s+|(?<=[\u3002\uff01\uff1f]))",
                                        r"\n", r"\s"))


@stage
class Chunked:
    """Settings of chunks of facts: at most ``size`` characters, of which ``overlap`` repeat the chunk before."""

    size: Annotated[int, Field(ge=1)] = 1600  # characters: v1's
    overlap: Annotated[int, Field(ge=0)] = 320  # v1's

    def __post_init__(self) -> None:
        if self.overlap * 2 > self.size:
            raise MemlabError(f"the overlap ({self.overlap}) is more than half the size ({self.size}), beyond which "
                              "chunks break", where="write.extract.chunked", fix="lower overlap")


def cuts(text: str, size: int, overlap: int) -> list[Span]:
    """Cut a text after the last sentence within ``size``, else after the last newline, else space, else anywhere.

    A break counts only beyond half the size: our reading of an unclear description ("minimum overlap threshold at 50 %
    of chunk size"). A chunk begins ``overlap`` characters before the end of the one before, or at the next word.

    >>> [("One two. Three four. Five."[a:b]) for a, b in cuts("One two. Three four. Five.", 15, 0)]
    ['One two. ', 'Three four. ', 'Five.']
    """
    spans: list[Span] = []
    start = 0
    while len(text) - start > size:
        end = _end(text, start, size)
        spans.append((start, end))
        begin = re.compile(r"(?<=\s)\S|\Z").search(text, max(end - overlap, start + 1))
        start = begin.start() if begin and begin.start() < end else end
    return [*spans, (start, len(text))] if text[start:].strip() or not spans else spans


def _end(text: str, start: int, size: int) -> int:
    for pattern in _BREAKS:
        if breaks := [m.end() for m in pattern.finditer(text, start + size // 2, start + size)]:
            return breaks[-1]
    return start + size


def chunks(lines: Sequence[str], cut: Chunked) -> list[tuple[str, list[int]]]:
    """Join lines and cut them; return each chunk with the positions of the lines of which it shows a part."""
    text = "\n".join(lines)
    ends = [0]
    for line in lines:
        ends.append(ends[-1] + len(line) + 1)
    return [(text[a:b].strip(), [i for i in range(len(lines)) if ends[i] < b and ends[i + 1] - 1 > a])
            for a, b in cuts(text, cut.size, cut.overlap)]


KIND = "fact"
"""The kind of a fact's memory: its lanes are dense:fact and lexical:fact."""

Into = Literal["keys", "replace", "merge"]

_TEXT = pl.String()
_DAY = "[%Y-%m-%d] "


@stage
class Extractor(ABC):
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

    @abstractmethod
    def extracts(self, talks: Sequence[Talk], store: Store, notes: Notes) -> list[Extract]:
        """Return the extract of each distinct session."""

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return memories, texts, entities and links with the extracts of the distinct sessions in all their places."""
        notes = Notes()
        talks, places = distinct_talks(tables)
        extracts = self.extracts(talks, store, notes)
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
        return out.updated({"memories": out["memories"].with_columns(number), **name_tables(places, extracts),
                            "notes": notes.table()})


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
