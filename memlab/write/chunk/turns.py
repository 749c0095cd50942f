"""Chunkers along the lines of the conversation: the turn, the round, the session, or several at once.

The roles decide what enters the key; the value covers the whole chunk. A turn or round whose key is blank is no
memory; a session always is one.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, ClassVar, Literal, Protocol, runtime_checkable

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


@runtime_checkable
class Chunker(Protocol):
    """A stage that writes memories of one kind."""

    kind: Any

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return memories and the texts that they need."""
        ...


@stage
class RoleChunker:
    """The settings of every chunker, and the kind of memory that it writes."""

    reads: ClassVar = ("texts", "sessions", "turns")
    writes: ClassVar = ("memories", "texts")
    chunking: ClassVar[str]

    roles: Roles = EVERYONE  # the roles that are heard; [user] is LongMemEval's official protocol
    speakers: bool = True  # "Name: text" where speakers have names (LoCoMo)

    @property
    def kind(self) -> str:
        """The chunking, and the role that it hears if it hears one only: ``turn``, ``turn.user``."""
        heard = set(self.roles)
        return self.chunking if len(heard) > 1 else f"{self.chunking}.{heard.pop()}"

    def turns(self, tables: Tables) -> pl.DataFrame:
        """Return all turns with their ``search_text`` and ``display_text``."""
        return render_turns(tables["turns"], tables["texts"], self.speakers)


def memories(chunks: pl.DataFrame, kind: str, tables: Tables, *, blank: bool = False) -> Tables:
    """Turn chunks (corpus, session, turns, key, value: plain text) into memories, in order, and grow the texts.

    Chunks with a blank key are dropped unless ``blank``. Their source is the column ``source``, or "conversation".
    """
    if not blank:
        chunks = chunks.filter(pl.col("key").str.strip_chars() != "")
    keys, texts = add_texts(tables["texts"], chunks["key"])
    values, texts = add_texts(texts, chunks["value"])
    dated = chunks.select(SESSION).join(tables["sessions"], on=SESSION, how="left", maintain_order="left")
    made = frame("memories", {
        "memory": pl.int_range(chunks.height, eager=True, dtype=pl.Int64),
        "corpus": chunks["corpus"], "session": chunks["session"], "turns": chunks["turns"],
        "kind": pl.repeat(kind, chunks.height, eager=True, dtype=pl.String),
        "source": chunks.get_column("source", default=pl.repeat("conversation", chunks.height, eager=True)),
        "key_id": keys, "value_id": values, "said_on": dated["said_on"],
    })
    return Tables(memories=made, texts=texts)


def _joined(turns: pl.DataFrame, by: list[str], roles: tuple[str, ...]) -> pl.DataFrame:
    """Make a chunk of each group: its key joined by one space, as LongMemEval's official protocol has it."""
    heard = pl.col("role").is_in(list(roles))
    return turns.group_by(by, maintain_order=True).agg(
        pl.col("turn").alias("turns"),
        pl.col("search_text").filter(heard).str.join(" ").alias("key"),
        pl.col("display_text").str.join(TURN_SEPARATOR).alias("value"),
    )


@stage
class TurnChunker(RoleChunker):
    """One memory per turn of these roles; a blank turn is none."""

    chunking: ClassVar = "turn"

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return one memory per turn."""
        turns = self.turns(tables).filter(
            pl.col("role").is_in(list(self.roles)))
        chunks = turns.select(*SESSION, pl.concat_list("turn").alias("turns"), pl.col("role").alias("source"),
                              pl.col("search_text").alias("key"), pl.col("display_text").alias("value"))
        return memories(chunks, self.kind, tables)


@stage
class RoundChunker(RoleChunker):
    """One memory per round: a turn of the one who asks, and all that follows up to that one's next turn.

    The one who asks is the user; where people with names talk to each other, whoever speaks first in the
    session as a user. What an assistant says before is a round of its own. So a second user turn in a row opens
    a new round, and a second assistant turn belongs to the reply.
    """

    chunking: ClassVar = "round"

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return one memory per round."""
        turns = self.turns(tables).with_columns(
            round_numbers().alias("round"))
        return memories(_joined(turns, [*SESSION, "round"], self.roles), self.kind, tables)


@stage
class SessionChunker(RoleChunker):
    """One memory per session; with ``roles=[user]`` the key is that of LongMemEval's official protocol.

    There a session in which only the assistant speaks is a document with an empty key: it is never found, but it
    counts in the statistics of BM25.
    """

    chunking: ClassVar = "session"

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return one memory per session."""
        turns = self.turns(tables)
        return memories(_joined(turns, SESSION, self.roles), self.kind, tables, blank=True)


@stage
class Levels:
    """Several chunkings at once, each a kind of memory and so a lane of its own."""

    reads: ClassVar = RoleChunker.reads
    writes: ClassVar = RoleChunker.writes
    chunkers: Annotated[tuple[Chunker, ...], Field(strict=False, min_length=1)]

    def __post_init__(self) -> None:
        twice = sorted(k for k, n in Counter(c.kind for c in self.chunkers).items() if n > 1)
        if twice:
            raise MemlabError(f"two chunkers write memories of the kind {', '.join(twice)}",
                              where="write.chunk.chunkers", fix="keep one of them, or give them other roles")

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the memories of all chunkers, numbered through in their order."""
        parts = []
        for chunker in self.chunkers:
            part = chunker.run(tables, store)
            tables = tables.updated({"texts": part["texts"]})
            parts.append(part["memories"])
        number = pl.int_range(pl.len(), dtype=pl.Int64).alias("memory")
        return Tables(memories=pl.concat(parts).with_columns(number), texts=tables["texts"])
