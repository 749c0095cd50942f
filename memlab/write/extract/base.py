"""Facts, entities and links of a session, and the distinct sessions to extract from.

Benchmarks repeat a session in several haystacks, under other dates. Each distinct session is extracted once, without
its date, and its extract is written for each place of the session in a haystack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from memlab.tables import SCHEMAS, SESSION, Tables
from memlab.text.transcript import render_turns

Category = Literal["preference", "date", "amount", "count", "event", "other"]
Source = Literal["user", "assistant"]
Kind = Literal["person", "organization", "location", "object"]


@dataclass(frozen=True)
class SpokenTurn:
    """A turn of a session: the role and name (or None) of the speaker, the raw text, and the line that shows both."""

    role: str
    speaker: str | None
    text: str
    line: str

    @property
    def name(self) -> str:
        """The speaker's name, else the role."""
        return self.speaker or self.role


Talk = tuple[SpokenTurn, ...]
"""The turns of a session, in order."""


@dataclass(frozen=True)
class ExtractedFact:
    """A sentence that is understood alone; ``turns`` are positions (from 0) in its session, ascending."""

    text: str
    turns: tuple[int, ...]
    category: Category
    source: Source


@dataclass(frozen=True)
class Entity:
    """A person, place, organisation or thing that a session names, with a summary."""

    name: str
    kind: Kind
    summary: str


@dataclass(frozen=True)
class Link:
    """A relationship between two names; ``when`` is in the words of the session, or None."""

    source: str
    relation: str
    target: str
    when: str | None = None


@dataclass(frozen=True)
class Extract:
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
    def place_rows(columns: Sequence[str], rows: list[tuple[Any, ...]]) -> pl.DataFrame:
        table = pl.DataFrame(rows, schema={"talk": pl.Int32, **dict.fromkeys(columns, pl.String)}, orient="row")
        return places.join(table, on="talk", maintain_order="left_right")

    entities = place_rows(("name", "kind", "summary"), [
        (talk, e.name, e.kind, e.summary) for talk, extract in enumerate(extracts) for e in extract.entities])
    links = place_rows(("source", "relation", "target", "when"), [
        (talk, r.source, r.relation, r.target, r.when) for talk, extract in enumerate(extracts) for r in extract.links])
    # only a full date counts; for other words of time the session's day stands
    day = pl.col("when").str.extract(r"\b(\d{4}-\d{2}-\d{2})\b").str.to_datetime(
        "%Y-%m-%d", strict=False, time_unit="us")
    return {"entities": entities.select(list(SCHEMAS["entities"])),
            "links": links.with_columns(pl.coalesce(day, "said_on").alias("said_on")).select(list(SCHEMAS["links"]))}
