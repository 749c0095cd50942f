"""Relations between memories: the order of time, and what a new memory adds, merges or ends.

Versioning: each new memory is added, merged with one that says the same, or ends an outdated one.

The history stays: nothing is deleted; an ended memory gets the day from which it is out of date.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Protocol

import numpy as np
import polars as pl
import scipy  # its parts are loaded when they are used
from pydantic import Field

from memlab.models.protocols import Embedder, Floats, Ints
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import DIGITS, SCHEMAS, Tables, distinct_texts, with_text
from memlab.pipeline.transcript import TURN_SEPARATOR
from memlab.stages.write.contradiction import STOP, WORD, claims, states
from memlab.store import Store
from memlab.store.store import encode
from memlab.support.text.tokenize import words

READS = ("texts", "turns", "memories")
LEAST, MOST, FULL_DAYS = 0.75, 0.95, 60.0
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Pairs = tuple[Ints, Ints]
Near = tuple[Ints, Ints, Floats]
"""Pairs of rows: later (m,), earlier (m,), cosine (m,)."""


class TimelineStatement(Protocol):
    """A statement of a text that a later one may deny or replace."""

    def keys(self) -> list[tuple[str, ...]]:
        """Return the keys of which two statements must share one to be compared."""
        ...

    def against(self, older: Any) -> bool:
        """Return whether this statement ends an older one."""
        ...


Read = Callable[[str, str], Iterable[TimelineStatement]]
"""A function of a text and its speaker that returns the statements in the text."""


def confidence(days: Any) -> Any:
    """Return the confidence that a contradiction replaces a statement ``days`` older (a number, an array).

    MemoryStack: .75 to .95, growing with the gap, .95 from 60 days on; linear growth is our reading.

    >>> [round(float(confidence(days)), 3) for days in (0, 30, 60, 400)]
    [0.75, 0.85, 0.95, 0.95]
    """
    return LEAST + (MOST - LEAST) * np.clip(days, 0.0, FULL_DAYS) / FULL_DAYS


def concat_pairs(parts: Iterable[Near]) -> Near:
    """Concatenate groups of pairs; there may be none."""
    none = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))
    later, earlier, cosine = (np.concatenate(column) for column in zip(none, *parts))
    return later, earlier, cosine


def key_terms(texts: pl.Series) -> scipy.sparse.csr_array:
    """Return the key terms of each text: a row per text with ones where a term occurs, (n, terms).

    >>> key_terms(pl.Series(["My cats sleep", "the cat"])).toarray().sum(axis=1).tolist()
    [2, 1]
    """
    rows = words(texts, WORD, STOP, "english").unique().sort("row", "term")
    at = rows["term"].rank("dense").cast(pl.Int64).to_numpy() - 1
    shape = (len(texts), int(at.max()) + 1 if len(at) else 1)
    ones = np.ones(len(at), np.int32)
    return scipy.sparse.csr_array((ones, (rows["row"].to_numpy().astype(np.int64), at)), shape=shape)


def nearest(vectors: Any, count: int, block: int = 512) -> Near:
    """Return the ``count`` nearest earlier rows of each row.

    ``vectors`` (n, dim) are unit vectors in the order of time. Cosines are rounded to six decimals; the earlier of two
    equal ones comes first. At most ``block`` x n cosines are in memory at a time.

    >>> later, earlier, _ = nearest(np.eye(3, dtype=np.float32)[[0, 1, 0]], 1)
    >>> list(zip(later.tolist(), earlier.tolist()))
    [(1, 0), (2, 0)]
    """
    parts: list[Near] = []
    for start in range(0, len(vectors), block):
        rows = np.arange(start, min(start + block, len(vectors)))
        cosine = np.round(vectors[rows] @ vectors[:rows[-1] + 1].T, DIGITS)
        cosine[np.arange(cosine.shape[1])[None, :] >= rows[:, None]] = -np.inf
        # rows that tie with the last one stay until the cut in the order of time below
        least = np.partition(cosine, -count, axis=1)[:, -count] if count < cosine.shape[1] else -np.inf
        at, earlier = np.nonzero((cosine >= np.reshape(least, (-1, 1))) & (cosine > -np.inf))
        value = cosine[at, earlier]
        order = np.lexsort((earlier, -value, at))
        at, earlier, value = at[order], earlier[order], value[order]
        kept = np.arange(len(at)) - np.searchsorted(at, at) < count
        parts.append((rows[at[kept]], earlier[kept], value[kept]))
    return concat_pairs(parts)


def count_shared(terms: scipy.sparse.csr_array, one: Ints, other: Ints, block: int = 50_000) -> Ints:
    """Count the key terms that row ``one[i]`` and row ``other[i]`` share, (m,)."""
    counts = np.zeros(len(one), np.int64)
    for start in range(0, len(one), block):
        part = slice(start, start + block)
        counts[part] = terms[one[part]].multiply(terms[other[part]]).sum(axis=1)
    return counts


@dataclass(frozen=True)
class Timeline:
    """Memories in the order of time, grouped by corpus and kind.

    Order within a group: date (undated first), session, first turn, memory id. All methods use row numbers of this
    order.
    """

    memories: pl.DataFrame
    tables: Tables

    @staticmethod
    def of(tables: Tables) -> Timeline:
        """Return the timeline of the memories in these tables."""
        turn = pl.col("turns").list.min().alias("turn")
        return Timeline(tables["memories"].with_columns(turn).sort(
            "corpus", "kind", "said_on", "session", "turn", "memory", nulls_last=False), tables)

    @cached_property
    def group(self) -> Ints:
        """Number of each row's group, ascending, (n,)."""
        return self.memories.select(pl.struct("corpus", "kind").rle_id()).to_series().to_numpy().astype(np.int64)

    @cached_property
    def days(self) -> Floats:
        """Day of each row, as days since 1970; not-a-number without a date, (n,)."""
        days = self.memories["said_on"].dt.date().to_physical().cast(pl.Float64)
        return days.fill_null(float("nan")).to_numpy()

    @cached_property
    def terms(self) -> scipy.sparse.csr_array:
        """Key terms of each row's value, (n, terms)."""
        texts, rows = distinct_texts(self.tables["texts"], self.memories["value_id"])
        return key_terms(texts["text"])[rows]

    def texts(self, column: str) -> pl.Series:
        """Return the texts of a column of ids, (n,)."""
        return with_text(self.memories, self.tables["texts"], column)["text"].fill_null("")

    def groups(self) -> Iterator[slice]:
        """Yield the rows of each group."""
        cuts = np.flatnonzero(np.diff(self.group, prepend=-1, append=-1)).tolist()
        yield from (slice(a, b) for a, b in pairwise(cuts)) if len(self.group) else ()

    def near(self, store: Store, embedder: Embedder, count: int) -> Near:
        """Return the ``count`` nearest earlier rows of each row, by key."""
        vectors = encode(store, embedder, self.tables["texts"], self.memories["key_id"], "document")
        near = ((part.start, nearest(vectors[part], count)) for part in self.groups())
        return concat_pairs((later + start, earlier + start, cosine) for start, (later, earlier, cosine) in near)

    def cosines(self, store: Store, embedder: Embedder, pairs: Pairs, block: int = 50_000) -> Floats:
        """Return the cosine of each pair of rows by their keys, rounded as ``near`` rounds them."""
        vectors = encode(store, embedder, self.tables["texts"], self.memories["key_id"], "document")
        cosines = np.empty(len(pairs[0]), np.float32)
        for start in range(0, len(cosines), block):
            later, earlier = (rows[start : start + block] for rows in pairs)
            cosines[start : start + block] = np.einsum("ij,ij->i", vectors[later], vectors[earlier])
        return np.round(cosines, DIGITS)

    def statements(self, read: Read) -> Iterator[tuple[int, tuple[TimelineStatement, ...]]]:
        """Yield (row, statements of users) for rows with a statement; each distinct text is read once."""
        names = frozenset({*self.tables["turns"]["speaker"].drop_nulls().unique(), "user", "assistant"})
        for row, (text, source) in enumerate(zip(self.texts("value_id"), self.memories["source"])):
            if source != "assistant" and (statements := _statements(read, text, names)):
                yield row, statements

    def conflicts(self, read: Read, most: int) -> Pairs:
        """Return (later, earlier) rows of one group where a statement in the later row ends one in the earlier row.

        Only the ``most`` latest statements on one thing are compared, so that time and edges stay linear. Rows with the
        same turns of the same session (the facts of a turn) are of one time and do not conflict.
        """
        latest: dict[tuple[Any, ...], deque[tuple[int, TimelineStatement]]] = defaultdict(lambda: deque(maxlen=most))
        turns, session = self.memories["turns"].to_list(), self.memories["session"].to_list()
        ended: dict[tuple[int, int], None] = {}
        for row, statements in self.statements(read):
            keyed = [((self.group[row], *key), new) for new in statements for key in new.keys()]  # noqa: SIM118
            for key, new in keyed:
                for earlier, older in latest[key]:
                    one_time = session[earlier] == session[row] and turns[earlier] == turns[row]
                    if not one_time and new.against(older):
                        ended[(row, earlier)] = None
            for key, new in keyed:
                latest[key].append((row, new))
        pairs = np.array(list(ended), np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def gap(self, later: Ints, earlier: Ints) -> Floats:
        """Return the days between two rows, 0 if one is undated."""
        return np.nan_to_num(self.days[later] - self.days[earlier], nan=0.0)

    def follows(self) -> Pairs:
        """Return (later, previous) rows of one session, also where another session is between them in time."""
        session, group = self.memories["session"].to_numpy(), self.group
        order = np.lexsort((session, group))  # stable: in the order of time within a session
        same = (session[order[1:]] == session[order[:-1]]) & (group[order[1:]] == group[order[:-1]])
        pairs = np.stack([order[1:][same], order[:-1][same]])
        return tuple(pairs[:, np.argsort(pairs[0])])  # type: ignore[return-value]

    def edges(self, kind: str, pairs: Pairs, confidence: Any) -> pl.DataFrame:
        """Return edges between rows; ``confidence`` is one number or one per pair."""
        ids = self.memories["memory"].to_numpy()
        later, earlier = pairs
        confidence = np.broadcast_to(np.asarray(confidence, np.float64), len(later))
        return pl.DataFrame({"source": ids[later], "target": ids[earlier], "kind": [kind] * len(later),
                             "confidence": confidence.round(DIGITS)}, schema=SCHEMAS["edges"])


@lru_cache(maxsize=1 << 17)
def _statements(read: Read, text: str, names: frozenset[str]) -> tuple[TimelineStatement, ...]:
    """Read the turns of users in a text; cached, since haystacks share sessions and a live memory reads texts again."""
    statements: list[TimelineStatement] = []
    speaker = "user"  # of a text without names
    for part in text.split(TURN_SEPARATOR):
        name, colon, rest = part.partition(": ")
        if colon and name in names:
            speaker, part = name, rest
        if speaker != "assistant":
            statements += read(re.sub(r"\s*\n\s*", "\n", part), speaker)
    return tuple(statements)


@stage
class Versions:
    """ADD, MERGE or INVALIDATE each memory against the earlier ones of its corpus and kind, in the order of time.

    * INVALIDATE: a contradiction (``relations.contradiction``) or a new state of the same slot
      (``relations.attributes``). The earlier memory's ``valid_to`` becomes the day of the later one, which gets an edge
      SUPERSEDES. A memory is ended once, by the first that contradicts or replaces it.
    * MERGE: cosine of at least ``same``, at least ``same_terms`` of the key terms of both in common (Jaccard), and the
      same numbers. Its edge ELABORATES leads to the nearest such memory still valid; its confidence is the cosine.
    * ADD: all others.

    A memory of more than ``max_words`` words says more than the one thing that changed: it is never ended.
    ``valid_from`` is the day of the memory. Compare ``valid_to`` with a question's day before you use it.
    """

    reads: ClassVar = READS
    writes: ClassVar = ("memories", "edges")
    embedder: Embedder
    same: Share = 0.9  # least cosine of two memories that say the same
    same_terms: Share = 0.6  # least share of common key terms (Jaccard); all numbers must agree too
    max_words: Count = 120  # longer memories are never ended
    most: Count = 20  # earlier memories that each is compared with

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the memories with their validity, and the edges."""
        timeline = Timeline.of(tables)
        ended = self._ends(timeline)
        merged, cosine = self._merges(timeline, store, ended)
        edges = pl.concat([timeline.edges("SUPERSEDES", ended, confidence(timeline.gap(*ended))),
                           timeline.edges("ELABORATES", merged, np.clip(cosine, 0, 1))])
        days = timeline.memories.select("memory", pl.col("said_on").alias("valid_to"))
        until = edges.filter(pl.col("kind") == "SUPERSEDES").join(days, left_on="source", right_on="memory").select(
            pl.col("target").alias("memory"), "valid_to")
        memories = tables["memories"].drop("valid_to").with_columns(pl.col("said_on").alias("valid_from")).join(
            until, on="memory", how="left", maintain_order="left").select(list(SCHEMAS["memories"]))
        return Tables(memories=memories, edges=edges)

    def _ends(self, timeline: Timeline) -> Pairs:
        """Return (later, earlier) rows where the later ends the earlier; each earlier row occurs once."""
        words = timeline.texts("value_id").str.count_matches(r"\w+").to_numpy()
        later, earlier = (np.concatenate(both) for both in zip(timeline.conflicts(claims, self.most),
                                                               timeline.conflicts(states, self.most)))
        short = words[earlier] <= self.max_words
        later, earlier = later[short], earlier[short]
        order = np.lexsort((later, earlier))
        first = order[np.diff(earlier[order], prepend=-1) != 0]
        return later[first], earlier[first]

    def _merges(self, timeline: Timeline, store: Store, ended: Pairs) -> tuple[Pairs, np.ndarray]:
        """Return (later, earlier) rows that say the same, with the nearest earlier row only, and their cosines."""
        later, earlier, cosine = timeline.near(store, self.embedder, self.most)
        close = cosine >= self.same
        later, earlier, cosine = later[close], earlier[close], cosine[close]
        shared = count_shared(timeline.terms, later, earlier)
        terms = timeline.terms.sum(axis=1)
        numbers = timeline.texts("value_id").str.extract_all(r"\d[\d.,:]*").list.sort().list.join(" ").to_numpy()
        ends = np.full(len(timeline.group), len(timeline.group), np.int64)
        ends[ended[1]] = ended[0]
        same = ((shared >= self.same_terms * np.maximum(terms[later] + terms[earlier] - shared, 1))
                & (numbers[later] == numbers[earlier]) & (ends[earlier] > later) & ~np.isin(later, ended[0]))
        later, earlier, cosine = later[same], earlier[same], cosine[same]
        nearest = np.diff(later, prepend=-1) != 0
        return (later[nearest], earlier[nearest]), cosine[nearest]
