"""Scores of pairs by a model, put where their pairs stand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memlab.models.protocols import Floats, Ints, PairScorer


def pair_scores(scorer: PairScorer, queries: Sequence[str], passages: Sequence[str], pairs: Ints) -> Floats:
    """Return the score of each pair; each is given once."""
    found = np.full(len(pairs), np.nan, np.float32)
    for at, block in scorer.score(queries, passages, pairs):
        assert np.isnan(found[at]).all(), "a pair was given twice"
        found[at] = block
    return found
