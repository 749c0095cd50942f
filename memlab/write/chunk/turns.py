"""Chunkers by turn, round or session, or by several of these.

The key contains the turns of the given roles, the value all turns of the chunk. A turn or round with a blank key is no
memory; a session always is one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import Annotated, ClassVar, Literal

import polars as pl
from pydantic import Field

from memlab.errors import MemlabError
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import SESSION, Tables, add_texts, frame
from memlab.text.transcript import TURN_SEPARATOR, render_turns, round_numbers

Role = Literal["user", "assistant"]
Roles = Annotated[tuple[Role, ...], Field(strict=False, min_length=1)]
EVERYONE: tuple[Role, ...] = ("user", "assistant")


@stage
class RoleChunker(ABC):
    """Base of the chunkers: settings, and the kind of the memories."""

    reads: ClassVar = ("texts", "sessions", "turns")
    writes: ClassVar = ("memories", "texts")
    chunking: ClassVar[str]

    roles: Roles = EVERYONE  # roles in the key; [user] is LongMemEval's official protocol
    speakers: bool = True  # "Name: text" in the key where speakers have names (LoCoMo)

    @property
    def kind(self) -> str:
        """The chunking, with its role if there is only one: ``turn``, ``turn.user``."""
        roles = set(self.roles)
        return self.chunking if len(roles) > 1 else f"{self.chunking}.{roles.pop()}"

    @abstractmethod
    def run(self, tables: Tables, store: Store) -> Tables:
        """Return memories of this kind, and the texts with theirs."""

    def turns(self, tables: Tables) -> pl.DataFrame:
        """Return all turns with their ``search_text`` and ``display_text``."""
        return render_turns(tables["turns"], tables["texts"], self.speakers)


def memories(chunks: pl.DataFrame, kind: str, tables: Tables, *, blank: bool = False) -> Tables:
    """Return chunks (corpus, session, turns, key, value: plain text) as memories, in order, and the texts with theirs.

    Chunks with a blank key are left out unless ``blank``. Chunks may have a category, and a source other than
    "conversation".
    """
    if not blank:
        chunks = chunks.filter(pl.col("key").str.strip_chars() != "")
    keys, texts = add_texts(tables["texts"], chunks["key"])
    values, texts = add_texts(texts, chunks["value"])
    dated = chunks.select(SESSION).join(tables["sessions"], on=SESSION, how="left", maintain_order="left")
    return Tables(texts=texts, memories=frame("memories", {
        "memory": pl.int_range(chunks.height, eager=True, dtype=pl.Int64),
        "corpus": chunks["corpus"], "session": chunks["session"], "turns": chunks["turns"],
        "kind": pl.repeat(kind, chunks.height, eager=True, dtype=pl.String),
        "source": chunks.get_column("source", default=pl.repeat("conversation", chunks.height, eager=True)),
        "category": chunks.get_column("category", default=pl.repeat(None, chunks.height, eager=True, dtype=pl.String)),
        "key_id": keys, "value_id": values, "said_on": dated["said_on"],
    }))


def _join_turns(turns: pl.DataFrame, by: list[str], roles: tuple[str, ...]) -> pl.DataFrame:
    """Return one chunk per group; one space separates the turns in a key, as in LongMemEval's official protocol."""
    return turns.group_by(by, maintain_order=True).agg(
        pl.col("turn").alias("turns"),
        pl.col("search_text").filter(pl.col("role").is_in(list(roles))).str.join(" ").alias("key"),
        pl.col("display_text").str.join(TURN_SEPARATOR).alias("value"),
    )


@stage
class TurnChunker(RoleChunker):
    """One memory per turn of these roles that is not blank."""

    chunking: ClassVar = "turn"

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return one memory per turn."""
        turns = self.turns(tables).filter(pl.col("role").is_in(list(self.roles)))
        chunks = turns.select(*SESSION, pl.concat_list("turn").alias("turns"), pl.col("role").alias("source"),
                              pl.col("search_text").alias("key"), pl.col("display_text").alias("value"))
        return memories(chunks, self.kind, tables)


@stage
class RoundChunker(RoleChunker):
    """One memory per round: a turn of the asker, and all turns up to the asker's next one.

    The asker is the user; among people with names, the first to speak as a user. Turns before the asker's first are a
    round of their own. So a second user turn in a row opens a new round, and a second assistant turn is in the same.
    """

    chunking: ClassVar = "round"

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return one memory per round."""
        turns = self.turns(tables).with_columns(round_numbers().alias("round"))
        return memories(_join_turns(turns, [*SESSION, "round"], self.roles), self.kind, tables)


@stage
class SessionChunker(RoleChunker):
    """One memory per session; with ``roles=[user]`` the key is that of LongMemEval's official protocol.

    There a session in which only the assistant speaks has an empty key: no search finds it, but it counts in the
    statistics of BM25.
    """

    chunking: ClassVar = "session"

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return one memory per session."""
        return memories(_join_turns(self.turns(tables), SESSION, self.roles), self.kind, tables, blank=True)


@stage
class Levels:
    """Several chunkings at once; each is a kind of memory and so has its own lane."""

    reads: ClassVar = RoleChunker.reads
    writes: ClassVar = RoleChunker.writes
    chunkers: Annotated[tuple[RoleChunker, ...], Field(strict=False, min_length=1)]

    def __post_init__(self) -> None:
        twice = sorted(k for k, n in Counter(c.kind for c in self.chunkers).items() if n > 1)
        if twice:
            raise MemlabError(f"two chunkers write memories of the kind {', '.join(twice)}",
                              where="write.chunk.chunkers", fix="keep one of them, or give them other roles")

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the memories of all chunkers, numbered in their order."""
        parts = []
        for chunker in self.chunkers:
            part = chunker.run(tables, store)
            tables = tables.updated({"texts": part["texts"]})
            parts.append(part["memories"])
        number = pl.int_range(pl.len(), dtype=pl.Int64).alias("memory")
        return Tables(memories=pl.concat(parts).with_columns(number), texts=tables["texts"])
