"""MemoryStack's relations, from each memory of a corpus to earlier ones."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
import polars as pl
from pydantic import Field

from memlab.models.protocols import Embedder, Ints
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables
from memlab.write.relations.contradiction import claims
from memlab.write.relations.similarity import count_shared
from memlab.write.relations.timeline import READS, Timeline

LEAST, MOST, FULL_DAYS = 0.75, 0.95, 60.0
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]


def confidence(days: Any) -> Any:
    """Return the confidence that a contradiction replaces a statement ``days`` older (a number, an array).

    MemoryStack: .75 to .95, growing with the gap, .95 from 60 days on; linear growth is our reading.

    >>> [round(float(confidence(days)), 3) for days in (0, 30, 60, 400)]
    [0.75, 0.85, 0.95, 0.95]
    """
    return LEAST + (MOST - LEAST) * np.clip(days, 0.0, FULL_DAYS) / FULL_DAYS


@stage
class MemoryStack:
    """MemoryStack's relations, to earlier memories of the same corpus and kind.

    * FOLLOWS: the previous memory of the session. Confidence 1.
    * RELATED_TO, SAME_TOPIC: cosine of at least ``related`` and ``same_topic``. The cosine is the confidence.
    * ELABORATES: more characters, and more than ``elaborates`` of the other's key terms. Confidence .8.
    * CONTRADICTS: by templates (``relations.contradiction``). The paper gives no confidence; .75 is SUPERSEDES' least.
    * SUPERSEDES: to the same memory as CONTRADICTS (``confidence``).

    Templates look at the ``most`` latest statements on the same thing, cosines and terms at the ``most`` nearest
    earlier memories. So edges grow with the memories, not with their square.
    """

    reads: ClassVar = READS
    writes: ClassVar = ("edges",)
    embedder: Embedder
    related: Share = 0.85  # least cosine of RELATED_TO (published)
    same_topic: Share = 0.9  # least cosine of SAME_TOPIC (published)
    elaborates: Share = 0.5  # ELABORATES: more than this share of the other's key terms (published)
    elaborates_confidence: Share = 0.8  # published
    most: Count = 20  # earlier memories that each is compared with

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the edges; earlier memories never depend on later ones."""
        timeline = Timeline.of(tables)
        later, earlier, cosine = timeline.near(store, self.embedder, self.most)
        related, topic = cosine >= self.related, cosine >= self.same_topic
        more = self._elaborates(timeline, later, earlier)
        denied = timeline.conflicts(claims, self.most)
        return Tables(edges=pl.concat([
            timeline.edges("FOLLOWS", timeline.follows(), 1.0),
            timeline.edges("RELATED_TO", (later[related], earlier[related]), np.clip(cosine[related], 0, 1)),
            timeline.edges("SAME_TOPIC", (later[topic], earlier[topic]), np.clip(cosine[topic], 0, 1)),
            timeline.edges("ELABORATES", (later[more], earlier[more]), self.elaborates_confidence),
            timeline.edges("CONTRADICTS", denied, LEAST),
            timeline.edges("SUPERSEDES", denied, confidence(timeline.gap(*denied))),
        ]))

    def _elaborates(self, timeline: Timeline, later: Ints, earlier: Ints) -> Any:
        """Return which later rows elaborate the earlier ones, (m,)."""
        length = timeline.texts("value_id").str.len_chars().to_numpy()
        terms = timeline.terms.sum(axis=1)[earlier]
        shared = count_shared(timeline.terms, later, earlier)
        return (length[later] > length[earlier]) & (terms > 0) & (shared > self.elaborates * terms)
