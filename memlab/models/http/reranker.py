"""Relevance scores from a service in the form that Jina, Cohere and vLLM share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from memlab.models.http.client import HttpModel, read_items
from memlab.models.local.batching import spread
from memlab.models.protocols import Floats, Ints
from memlab.stage import stage


@stage
class HttpReranker(HttpModel):
    """Posts one query and its passages to ``{url}/rerank``; scores are the service's own, usually in [0, 1]."""

    def identity(self) -> dict[str, Any]:
        """Return all known settings that can change a score; neither the address nor the key."""
        return {"is": "HttpReranker", "model": self.model, "max_characters": self.max_characters}

    def score(self, queries: Sequence[str], passages: Sequence[str], pairs: Ints) -> Iterator[tuple[Ints, Floats]]:
        """Score pairs (n, 2) of positions in queries and passages; yield (positions in pairs (b,), scores (b,))."""
        with self._service("rerank") as service:

            def work(batch: Ints) -> Floats:
                documents = [passages[p][: self.max_characters] or " " for p in pairs[batch, 1]]
                reply = service.post({"model": self.model, "query": queries[pairs[batch[0], 0]] or " ",
                                      "documents": documents, "top_n": len(documents)})
                return read_items(service, reply, "results", "relevance_score", len(documents),
                                  f"a score for each of {len(documents)} passages")

            yield from spread(self._batches(pairs), [work] * self.parallel)

    def _batches(self, pairs: Ints) -> Iterator[Ints]:
        """Group positions of pairs by query, one request's worth at a time."""
        order = np.argsort(pairs[:, 0], kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(pairs[order, 0])) + 1):
            for start in range(0, len(group), self.batch):
                yield group[start : start + self.batch]
