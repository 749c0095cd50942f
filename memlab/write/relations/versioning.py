"""Versioning: every new memory is added, merged with one that says the same, or ends one that is no longer so.

The history stays: nothing is deleted, an ended memory gets a day from which on it is out of date.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import polars as pl

from memlab.models.protocols import Embedder
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import SCHEMAS, Tables
from memlab.write.relations.attributes import states
from memlab.write.relations.contradiction import claims
from memlab.write.relations.memorystack import Count, Share, confidence
from memlab.write.relations.similarity import shared
from memlab.write.relations.timeline import READS, Line, Pairs


@stage
class Versions:
    """ADD, MERGE or INVALIDATE each memory against the earlier ones of its corpus and kind, in the order of time.

    * INVALIDATE: a contradiction (``memlab.write.relations.contradiction``) or a new state of the same slot
      (``relations.attributes``). The earlier memory's ``valid_to`` becomes the day on which the later was said,
      with an edge SUPERSEDES from the later one. A memory is ended once, by the first that does it.
    * MERGE: cosine of at least ``same``, at least ``same_terms`` of the key terms of both in common (Jaccard), and the
      same numbers. An edge ELABORATES, its confidence the cosine, to the nearest such memory that is still valid.
    * ADD: all others.

    A memory of more than ``max_words`` words says more than the one thing that changed: it is never ended.
    ``valid_from`` is the day said. Whoever uses ``valid_to`` for a question must hold it against the question's day.
    """

    reads: ClassVar = READS
    writes: ClassVar = ("memories", "edges")
    embedder: Embedder
    same: Share = 0.9  # cosine from which on two memories may say the same
    same_terms: Share = 0.6  # ... if they share this part of their key terms, and all numbers
    max_words: Count = 120  # longer memories say more than the one thing that changed: never ended
    most: Count = 20  # earlier memories that each is compared with

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the memories, dated, and the edges."""
        line = Line.of(tables)
        ended = self._ended(line)
        merged, cosine = self._merged(line, store, ended)
        edges = pl.concat([line.edges("SUPERSEDES", ended, confidence(line.gap(*ended))),
                           line.edges("ELABORATES", merged, np.clip(cosine, 0, 1))])
        said = line.memories.select("memory", pl.col("said_on").alias("valid_to"))
        until = edges.filter(pl.col("kind") == "SUPERSEDES").join(said, left_on="source", right_on="memory").select(
            pl.col("target").alias("memory"), "valid_to")
        memories = tables["memories"].drop("valid_to").with_columns(pl.col("said_on").alias("valid_from")).join(
            until, on="memory", how="left", maintain_order="left").select(list(SCHEMAS["memories"]))
        return Tables(memories=memories, edges=edges)

    def _ended(self, line: Line) -> Pairs:
        """Return (later, earlier): which row ends which; an earlier row occurs once, with the first that ends it."""
        words = line.texts("value_id").str.count_matches(r"\w+").to_numpy()
        later, earlier = (np.concatenate(both) for both in zip(line.conflicts(claims, self.most),
                                                               line.conflicts(states, self.most)))
        short = words[earlier] <= self.max_words
        later, earlier = later[short], earlier[short]
        order = np.lexsort((later, earlier))
        later, earlier = later[order], earlier[order]
        first = np.diff(earlier, prepend=-1) != 0
        return later[first], earlier[first]

    def _merged(self, line: Line, store: Store, ended: Pairs) -> tuple[Pairs, np.ndarray]:
        """Return (later, earlier) that say the same, each later row with the nearest alone, and their cosines."""
        later, earlier, cosine = line.near(store, self.embedder, self.most)
        close = cosine >= self.same
        later, earlier, cosine = later[close], earlier[close], cosine[close]
        both = shared(line.terms, later, earlier)
        held = np.asarray(line.terms.sum(axis=1)).ravel()
        numbers = line.texts("value_id").str.extract_all(r"\d[\d.,:]*").list.sort().list.join(" ").to_numpy()
        ends = np.full(len(line.group), len(line.group), np.int64)
        ends[ended[1]] = ended[0]
        ending = set(ended[0].tolist())
        kept = ((both >= self.same_terms * np.maximum(held[later] + held[earlier] - both, 1))
                & (numbers[later] == numbers[earlier]) & (ends[earlier] > later)
                & np.array([row not in ending for row in later.tolist()], bool))
        later, earlier, cosine = later[kept], earlier[kept], cosine[kept]
        nearest = np.diff(later, prepend=-1) != 0
        return (later[nearest], earlier[nearest]), cosine[nearest]


def operations(memories: pl.DataFrame, edges: pl.DataFrame) -> pl.DataFrame:
    """Name what each memory did when it came: (memory, operation), INVALIDATE before MERGE before ADD."""
    def sources(kind: str) -> pl.Expr:
        return pl.col("memory").is_in(edges.filter(pl.col("kind") == kind)["source"].implode())

    return memories.select("memory", pl.when(sources("SUPERSEDES")).then(pl.lit("INVALIDATE"))
                           .when(sources("ELABORATES")).then(pl.lit("MERGE")).otherwise(pl.lit("ADD"))
                           .alias("operation"))
