"""Rerankers through FlagEmbedding: encoders such as bge-reranker-v2-m3, and language models such as v2-gemma.

Scores are raw logits (for a language model that of the answer "Yes"). With transformers 5, FlagEmbedding decodes
and tokenises again, and cuts long pairs in its own way: on pairs beyond ``max_length`` its scores differ from those
of sentence-transformers' ``CrossEncoder``, which is memlab's reference for encoders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from memlab.models.flagembedding.loading import BLOCK, Batch, FlagModel, by_length, run_smaller
from memlab.models.local.batching import spread
from memlab.models.protocols import Floats, Ints
from memlab.stage import stage

_CLASSES = {"encoder": "FlagReranker", "llm": "FlagLLMReranker"}


@stage
class FlagPairScorer(FlagModel):
    """One of FlagEmbedding's rerankers, from a folder or the hub."""

    kind: Literal["encoder", "llm"] = "encoder"
    # tokens per pair: a question and a turn; the model was trained up to 1,024
    max_length: Annotated[int, Field(ge=8)] = 512
    batch: Batch = 32  # pairs per batch; made smaller where memory runs out

    def identity(self) -> dict[str, Any]:
        """Return all that can change a score."""
        return self._identity("FlagPairScorer", kind=self.kind)

    def score(self, queries: Sequence[str], passages: Sequence[str], pairs: Ints) -> Iterator[tuple[Ints, Floats]]:
        """Score pairs (n, 2) of positions in queries and passages; yield (positions in pairs (b,), scores (b,))."""
        if not len(pairs):
            return

        def work(model: Any, block: Ints) -> Floats:
            texts = [(queries[q], passages[p]) for q, p in pairs[block]]
            scores = run_smaller(lambda batch: model.compute_score(texts, batch_size=batch, max_length=self.max_length,
                                                                   normalize=False), self.batch)
            return np.asarray(scores, np.float32).reshape(-1)

        both = [queries[q] + passages[p] for q, p in pairs]
        yield from spread(by_length(both, BLOCK * self.batch), [partial(work, model) for model in self._models()])

    def _class(self) -> str:
        return _CLASSES[self.kind]

    def _has_bf16(self) -> bool:
        return self.kind == "llm"
