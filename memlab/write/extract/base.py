"""Facts and other extracts of a session, and the distinct sessions to extract from.

A benchmark lays the same session into several haystacks, under other dates: what is said in it is extracted once,
without its date, and written into every slot that holds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from memlab.tables import SCHEMAS, SESSION, Tables
from memlab.text.transcript import render_turns

Category = Literal["preference", "date", "amount", "count", "event", "other"]
Source = Literal["user", "assistant"]
Kind = Literal["person", "organization", "location", "object"]


@dataclass(frozen=True)
class Said:
    """A turn of a session: who speaks (a role, a name or none), the raw text, and the line that shows both."""

    role: str
    speaker: str | None
    text: str
    line: str

    @property
    def name(self) -> str:
        """The speaker's name, else the role."""
        return self.speaker or self.role


Talk = tuple[Said, ...]
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
    """A person, place, organisation or thing that a session names, and what it says of it."""

    name: str
    kind: Kind
    summary: str


@dataclass(frozen=True)
class Link:
    """A relationship between two names; ``when`` as it was said, or None."""

    source: str
    relation: str
    target: str
    when: str | None = None


@dataclass(frozen=True)
class Extract:
    """All that was extracted from a session; ``unread`` are the positions of turns that nobody could read."""

    facts: tuple[ExtractedFact, ...] = ()
    entities: tuple[Entity, ...] = ()
    links: tuple[Link, ...] = ()
    unread: tuple[int, ...] = ()


def clean(text: str) -> str:
    """Return a text in one line, without control characters and halves of surrogate pairs.

    >>> clean("Ann\\n moved\\x1b to\\ud83d  Rome.")
    'Ann moved to Rome.'
    """
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def talks(tables: Tables) -> tuple[list[Talk], pl.DataFrame]:
    """Return the distinct sessions, and the slots that hold them.

    Slots: corpus, session, said_on, numbers (the turns' numbers, by position), talk (which of the distinct ones).
    """
    lines = render_turns(tables["turns"], tables["texts"]).group_by(SESSION, maintain_order=True).agg(
        pl.col("turn").alias("numbers"), "role", "speaker", "text", "display_text")
    at: dict[Talk, int] = {}
    talk = [at.setdefault(tuple(map(Said, *turns)), len(at))
            for turns in lines.select("role", "speaker", "text", "display_text").iter_rows()]
    slots = lines.select(*SESSION, "numbers").with_columns(pl.Series("talk", talk, pl.Int32))
    return list(at), slots.join(tables["sessions"], on=SESSION, how="left", maintain_order="left").select(
        *SESSION, "said_on", "numbers", "talk")


def named(slots: pl.DataFrame, found: Sequence[Extract]) -> dict[str, pl.DataFrame]:
    """Return the tables ``entities`` and ``links``: what each distinct session names, in every slot that holds it."""
    entities = [(talk, e.name, e.kind, e.summary) for talk, one in enumerate(found) for e in one.entities]
    links = [(talk, r.source, r.relation, r.target, r.when) for talk, one in enumerate(found) for r in one.links]
    who = pl.DataFrame(entities, schema={"talk": pl.Int32, **{c: pl.String for c in ("name", "kind", "summary")}},
                       orient="row")
    what = pl.DataFrame(links, schema={"talk": pl.Int32, **{c: pl.String for c in ("source", "relation", "target",
                                                                                  "when")}}, orient="row")
    # a day is taken over where it was told in full; what else was said of the time is the session's day
    told = pl.col("when").str.extract(r"\b(\d{4}-\d{2}-\d{2})\b").str.to_datetime("%Y-%m-%d", strict=False,
                                                                                  time_unit="us")
    place = slots.select(*SESSION, "said_on", "talk")
    return {
        "entities": place.join(who, on="talk", maintain_order="left_right").select(list(SCHEMAS["entities"])),
        "links": place.join(what, on="talk", maintain_order="left_right").with_columns(
            pl.coalesce(told, "said_on").alias("said_on")).select(list(SCHEMAS["links"])),
    }
