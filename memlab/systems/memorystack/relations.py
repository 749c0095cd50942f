"""MemoryStack's relations, from each memory of a corpus to earlier ones."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import polars as pl

from memlab.models.protocols import Embedder, Floats, Ints
from memlab.stage import stage
from memlab.store import Store
from memlab.systems.memorystack.single_value import values
from memlab.tables import Tables
from memlab.write.contradiction import claims
from memlab.write.relations import LEAST, READS, Count, Pairs, Share, Timeline, confidence
from memlab.write.similarity import count_shared


@stage
class MemoryStack:
    """MemoryStack's relations, to earlier memories of the same corpus and kind.

    * FOLLOWS: the previous memory of the session. Confidence 1.
    * RELATED_TO, SAME_TOPIC: cosine of at least ``related`` and ``same_topic``. The cosine is the confidence.
    * ELABORATES: more characters, and more than ``elaborates`` of the other's key terms. Confidence .8.
    * CONTRADICTS: a denial by templates (``relations.contradiction``), or another value of a slot that has one value at
      a time (``single_value``). The paper gives no confidence; .75 is SUPERSEDES' least.
    * SUPERSEDES: to the same memory as CONTRADICTS (``confidence``).

    ELABORATES, CONTRADICTS and SUPERSEDES need a cosine of at least ``gate``. The paper's own examples of SUPERSEDES
    lie far below its gate with some encoders (.32 to .45 with MiniLM); ``gate: 0`` finds them.

    Templates look at the ``most`` latest statements on the same thing, cosines and terms at the ``most`` nearest
    earlier memories. So edges grow with the memories, not with their square.
    """

    reads: ClassVar = READS
    writes: ClassVar = ("edges",)
    embedder: Embedder
    related: Share = 0.85  # least cosine of RELATED_TO (published)
    same_topic: Share = 0.9  # least cosine of SAME_TOPIC (published)
    gate: Share = 0.85  # least cosine of ELABORATES, CONTRADICTS and SUPERSEDES (published); 0: any
    elaborates: Share = 0.5  # ELABORATES: more than this share of the other's key terms (published)
    elaborates_confidence: Share = 0.8  # published
    most: Count = 20  # earlier memories that each is compared with

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the edges; earlier memories never depend on later ones."""
        timeline = Timeline.of(tables)
        later, earlier, cosine = timeline.near(store, self.embedder, self.most)
        related, topic = cosine >= self.related, cosine >= self.same_topic
        more = self._elaborates(timeline, later, earlier) & self._passes(cosine)
        denied = self._ends(timeline, store)
        return Tables(edges=pl.concat([
            timeline.edges("FOLLOWS", timeline.follows(), 1.0),
            timeline.edges("RELATED_TO", (later[related], earlier[related]), np.clip(cosine[related], 0, 1)),
            timeline.edges("SAME_TOPIC", (later[topic], earlier[topic]), np.clip(cosine[topic], 0, 1)),
            timeline.edges("ELABORATES", (later[more], earlier[more]), self.elaborates_confidence),
            timeline.edges("CONTRADICTS", denied, LEAST),
            timeline.edges("SUPERSEDES", denied, confidence(timeline.gap(*denied))),
        ]))

    def _passes(self, cosine: Floats) -> Any:
        return (cosine >= self.gate) | (self.gate == 0)

    def _ends(self, timeline: Timeline, store: Store) -> Pairs:
        """Return (later, earlier) rows where the later contradicts the earlier, in the order of time."""
        pairs = np.unique(np.concatenate([np.stack(timeline.conflicts(read, self.most), axis=1)
                                          for read in (claims, values)]), axis=0)
        later, earlier = pairs[:, 0], pairs[:, 1]
        kept = self._passes(timeline.cosines(store, self.embedder, (later, earlier)))
        return later[kept], earlier[kept]

    def _elaborates(self, timeline: Timeline, later: Ints, earlier: Ints) -> Any:
        """Return which later rows elaborate the earlier ones, (m,)."""
        length = timeline.texts("value_id").str.len_chars().to_numpy()
        terms = timeline.terms.sum(axis=1)[earlier]
        shared = count_shared(timeline.terms, later, earlier)
        return (length[later] > length[earlier]) & (terms > 0) & (shared > self.elaborates * terms)
