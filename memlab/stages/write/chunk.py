"""Chunkers by turn, round or session, and by length (windows of characters or words, recursive splits).

By turn, round or session, or by several of these: the key contains the turns of the given roles, the value all turns of
the chunk. A turn or round with a blank key is no memory; a session always is one.

By length: all cut a session's transcript, "user: ..." per turn of the given roles, with blank lines between turns. A
piece is both key and value; its turns are those of which it contains a part.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

import polars as pl
from pydantic import Field

from memlab.pipeline.stage import stage
from memlab.pipeline.tables import SESSION, Tables, add_texts, frame
from memlab.pipeline.token_counter import TOKEN
from memlab.pipeline.transcript import TURN_SEPARATOR, render_turns, round_numbers
from memlab.store import Store
from memlab.support.errors import MemlabError

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


Span = tuple[int, int]
Size = Annotated[int, Field(ge=1)]
Overlap = Annotated[int, Field(ge=0)]
Separators = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(strict=False)]
_WORD = re.compile(TOKEN)


def windows(count: int, size: int, overlap: int) -> list[Span]:
    """Cover 0..count by windows of one size that start ``size - overlap`` apart.

    >>> windows(10, 5, 2)
    [(0, 5), (3, 8), (6, 10)]
    """
    last = max(count - overlap, 1)
    return [(start, min(start + size, count)) for start in range(0, last, size - overlap)] if count else []


def merge(short: list[Span], size: int, overlap: int) -> list[Span]:
    """Join neighbouring spans up to a size; each piece begins with the whole spans that fit into the overlap.

    >>> merge([(0, 3), (3, 6), (6, 9), (9, 12)], 6, 3)
    [(0, 6), (3, 9), (6, 12)]
    """
    pieces: list[Span] = []
    first = 0
    for i, (_, end) in enumerate(short):
        if end - short[first][0] > size:
            stop = short[i - 1][1]
            pieces.append((short[first][0], stop))
            while first < i and (stop - short[first][0] > overlap or end - short[first][0] > size):
                first += 1
    return [*pieces, (short[first][0], short[-1][1])] if short else pieces


def split_after(text: str, start: int, end: int, mark: str) -> list[Span]:
    """Cut text[start:end] after each occurrence of a mark.

    >>> split_after("aa bb", 0, 5, " ")
    [(0, 3), (3, 5)]
    """
    cuts = [start]
    while (at := text.find(mark, cuts[-1], end)) >= 0:
        cuts.append(at + len(mark))
    return list(pairwise([*cuts, end] if cuts[-1] < end else cuts))


def split(text: str, start: int, end: int, size: int, overlap: int, separators: tuple[str, ...]) -> list[Span]:
    """Cut text[start:end] at the first separator; join short spans, and cut long ones at the next separator.

    A span without separators is cut by characters. Only neighbours of one level are joined and overlap.

    >>> split("aa bb.cc dd", 0, 11, 5, 0, (".", " "))
    [(0, 3), (3, 6), (6, 11)]
    """
    if end - start <= size:
        return [(start, end)] if start < end else []
    if not separators:
        return [(a + start, b + start) for a, b in windows(end - start, size, overlap)]
    return _merge_short(split_after(text, start, end, separators[0]), size, overlap,
                        lambda a, b: split(text, a, b, size, overlap, separators[1:]))


def _merge_short(spans: list[Span], size: int, overlap: int, divide: Callable[[int, int], list[Span]]) -> list[Span]:
    """Join the spans that are short, and divide those longer than ``size``."""
    pieces: list[Span] = []
    short: list[Span] = []
    for a, b in spans:
        if b - a <= size:
            short.append((a, b))
        else:
            pieces += [*merge(short, size, overlap), *divide(a, b)]
            short = []
    return pieces + merge(short, size, overlap)


def transcripts(tables: Tables, roles: tuple[str, ...], speakers: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the turns of these roles with their span (begin, stop) in the transcript, and the transcripts."""
    turns = render_turns(tables["turns"], tables["texts"], speakers).filter(
        pl.col("role").is_in(list(roles)), pl.col("text").str.strip_chars() != "")
    line = pl.col("display_text")
    length, next_turn = line.str.len_chars().cast(pl.Int64), pl.col("next_turn")
    gap = len(TURN_SEPARATOR)
    turns = turns.with_columns((length + gap).cum_sum().over(SESSION).alias("next_turn")).with_columns(
        (next_turn - gap - length).alias("begin"), (next_turn - gap).alias("stop"))
    whole = turns.group_by(SESSION, maintain_order=True).agg(line.str.join(TURN_SEPARATOR).alias("text"))
    return turns, whole


def pieces(tables: Tables, roles: tuple[str, ...], speakers: bool, cut: Callable[[str], list[Span]],
           kind: str, trim: bool = True) -> Tables:
    """Return the memories of the pieces of each session's transcript, by default without spaces at their ends."""
    turns, whole = transcripts(tables, roles, speakers)
    spans_of = {text: cut(text) for text in whole["text"].unique(maintain_order=True)}  # haystacks share sessions
    spans = pl.Series([spans_of[t] for t in whole["text"]], dtype=pl.List(pl.Array(pl.Int64, 2)))
    cuts = whole.with_columns(spans.alias("span")).explode("span").with_row_index("piece").with_columns(
        pl.col("span").arr.get(0).alias("from"), pl.col("span").arr.get(1).alias("to"))
    touched = (
        cuts.select("piece", *SESSION, "from", "to").join(turns, on=SESSION, maintain_order="left")
        .filter(pl.col("begin") < pl.col("to"), pl.col("stop") > pl.col("from"))
        .sort("piece", "turn").group_by("piece", maintain_order=True).agg(pl.col("turn").alias("turns")))
    cut_out = pl.col("text").str.slice(pl.col("from"), pl.col("to") - pl.col("from"))
    chunks = cuts.join(touched, on="piece", maintain_order="left").with_columns(
        (cut_out.str.strip_chars() if trim else cut_out).alias("key"))
    return memories(chunks.with_columns(pl.col("key").alias("value")), kind, tables)


@stage
class LengthChunker(RoleChunker):
    """Base of the chunkers that cut a session's transcript (the turns of ``roles``) into pieces of limited size."""

    trim: ClassVar[bool] = True  # without the spaces at a piece's ends
    size: Size = 1000  # characters at most
    overlap: Overlap = 200  # most characters that a piece repeats of the one before

    def __post_init__(self) -> None:
        if self.overlap >= self.size:
            raise MemlabError(f"the overlap ({self.overlap}) is not smaller than the size ({self.size})",
                              where="write.chunk", fix="lower overlap")

    @abstractmethod
    def cut(self, text: str) -> list[Span]:
        """Return the spans of a transcript's pieces."""

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return one memory per piece."""
        return pieces(tables, self.roles, self.speakers, self.cut, self.kind, self.trim)


@stage
class Window(LengthChunker):
    """Windows of ``size`` characters that repeat ``overlap`` of the one before."""

    chunking: ClassVar = "window"
    size: Size = 1600  # characters, about 400 tokens: the size of published conversational systems
    overlap: Overlap = 320  # characters, a fifth of the size

    def cut(self, text: str) -> list[Span]:
        """Return the windows of a transcript."""
        return windows(len(text), self.size, self.overlap)


@stage
class Recursive(LengthChunker):
    """Pieces of at most ``size`` characters, cut at the coarsest separator that is fine enough."""

    chunking: ClassVar = "recursive"
    # blank line (between turns, too), line, sentence, word; text without separators is cut by characters
    separators: Separators = ("\n\n", "\n", ". ", "? ", "! ", " ")

    def cut(self, text: str) -> list[Span]:
        """Return the pieces of a transcript."""
        return split(text, 0, len(text), self.size, self.overlap, self.separators)


@stage
class Tokens(LengthChunker):
    """Windows of ``size`` words and punctuation marks, as the project's token counter counts them."""

    chunking: ClassVar = "tokens"
    size: Size = 400  # words and marks, as the token counter counts them
    overlap: Overlap = 80  # a fifth of the size

    def cut(self, text: str) -> list[Span]:
        """Return the windows of a transcript."""
        words = [m.span() for m in _WORD.finditer(text)]
        return [(words[a][0], words[b - 1][1]) for a, b in windows(len(words), self.size, self.overlap)]
