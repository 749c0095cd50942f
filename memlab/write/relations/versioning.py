"""Versioning: each new memory is added, merged with one that says the same, or ends an outdated one.

The history stays: nothing is deleted; an ended memory gets the day from which it is out of date.
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
from memlab.write.relations.similarity import count_shared
from memlab.write.relations.timeline import READS, Count, Pairs, Share, Timeline, confidence


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
