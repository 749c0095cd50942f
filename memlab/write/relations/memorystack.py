"""MemoryStack's relations between the memories of a corpus, from each memory to earlier ones."""

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
from memlab.write.relations.similarity import shared
from memlab.write.relations.timeline import READS, Line

KINDS = ("FOLLOWS", "RELATED_TO", "SAME_TOPIC", "ELABORATES", "CONTRADICTS", "SUPERSEDES")
LEAST, MOST, FULL_DAYS = 0.75, 0.95, 60.0
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]


def confidence(days: Any) -> Any:
    """How sure it is that a later contradiction takes the place of what was said ``days`` before (a number, an array).

    MemoryStack: .75 to .95, growing with the gap, .95 from 60 days on; that it grows evenly is our reading.

    >>> [round(float(confidence(days)), 3) for days in (0, 30, 60, 400)]
    [0.75, 0.85, 0.95, 0.95]
    """
    return LEAST + (MOST - LEAST) * np.clip(days, 0.0, FULL_DAYS) / FULL_DAYS


@stage
class MemoryStack:
    """MemoryStack's relations, to earlier memories of the same corpus and kind.

    FOLLOWS (the previous memory of the session, 1), RELATED_TO and SAME_TOPIC (cosine of at least ``related`` and
    ``same_topic``, which is the confidence: a pair over both has both), ELABORATES (it shows more characters, and
    holds more than ``elaborates`` of the other's key terms; .8), CONTRADICTS (templates, ``relations.contradiction``;
    the paper gives no confidence: .75, the least of what follows) and, to the same memory, SUPERSEDES (``confidence``).
    All but FOLLOWS and the templates look at the ``most`` nearest earlier memories; a template at the ``most`` latest
    that speak of the same. So edges grow with the memories, not with their square.
    """

    reads: ClassVar = READS
    writes: ClassVar = ("edges",)
    embedder: Embedder
    related: Share = 0.85  # cosine from which on: RELATED_TO (published)
    same_topic: Share = 0.9  # ... SAME_TOPIC as well (published)
    elaborates: Share = 0.5  # longer, and more than this share of the other's key terms: ELABORATES (published)
    elaborates_confidence: Share = 0.8  # published
    most: Count = 20  # earlier memories that each is compared with: edges grow with the memories, not their square

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the edges; earlier memories never depend on later ones."""
        line = Line.of(tables)
        later, earlier, cosine = line.near(store, self.embedder, self.most)
        related, topic = cosine >= self.related, cosine >= self.same_topic
        more = more_of(line, later, earlier, self.elaborates)
        denied = line.conflicts(claims, self.most)
        return Tables(edges=pl.concat([
            line.edges("FOLLOWS", line.follows(), 1.0),
            line.edges("RELATED_TO", (later[related], earlier[related]), np.clip(cosine[related], 0, 1)),
            line.edges("SAME_TOPIC", (later[topic], earlier[topic]), np.clip(cosine[topic], 0, 1)),
            line.edges("ELABORATES", (later[more], earlier[more]), self.elaborates_confidence),
            line.edges("CONTRADICTS", denied, LEAST),
            line.edges("SUPERSEDES", denied, confidence(line.gap(*denied))),
        ]))


def more_of(line: Line, later: Ints, earlier: Ints, share: float) -> Any:
    """Return which later rows are longer and hold more than a share of the earlier one's key terms, (m,)."""
    if not len(later):
        return np.zeros(0, bool)
    length = line.texts("value_id").str.len_chars().to_numpy().astype(np.int64)
    held = np.asarray(line.terms.sum(axis=1)).ravel()
    both = shared(line.terms, later, earlier)
    return (length[later] > length[earlier]) & (held[earlier] > 0) & (both > share * held[earlier])
