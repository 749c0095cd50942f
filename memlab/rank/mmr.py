"""Maximal marginal relevance: a reordering of the head of a ranking that avoids repetition."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import polars as pl
from pydantic import Field

from memlab.models.protocols import Embedder, Floats
from memlab.rank.fusion import Normaliser, normalise
from memlab.rank.rerank import below, passages_of
from memlab.rank.units import ranked
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import DIGITS, Tables


@stage
class MMR:
    """Choose, one after the other, the unit among the first ``pool`` of each question that maximises

        balance x score - (1 - balance) x largest cosine to a unit chosen before

    (Carbonell, Goldstein, SIGIR 1998), which becomes its score. Scores are normalised over the pool; a cosine below 0
    counts as 0, so that the values never rise from rank to rank. A unit's vector is that of its memory's key or of its
    turn, of a session the mean of its turns'. Ties go to the smaller unit; units below the pool keep their order.
    """

    reads: ClassVar = ("ranking", "units", "turns", "texts", "memories")
    writes: ClassVar = ("ranking",)

    embedder: Embedder
    pool: Annotated[int, Field(ge=1)] = 50  # first units that are reordered
    # weight of the score; 1 - balance weighs the similarity to the units chosen before
    balance: Annotated[float, Field(ge=0, le=1)] = 0.7
    normaliser: Normaliser = "minmax"  # over the pool, so that scores lie in [0, 1] as cosines do

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the ranking, its head in the order of choice."""
        ranking = tables["ranking"]
        head = ranking.filter(pl.col("rank") <= self.pool).sort("question", "rank")
        if head.is_empty():
            return Tables(ranking=ranking)
        head = head.with_columns(normalise("score", self.normaliser).alias("score"))
        units = head.select(pl.col("unit").unique().sort())
        vectors = self._vectors(units, tables, store)
        chosen = [
            pl.DataFrame({"question": part["question"][0], "unit": part["unit"], "new": greedy(
                part["score"].to_numpy(), vectors[units["unit"].search_sorted(part["unit"]).to_numpy()],
                part["unit"].to_numpy(), self.balance)}, schema_overrides={"question": pl.Int32})
            for part in head.partition_by("question", maintain_order=True)]
        scored = head.join(pl.concat(chosen), on=["question", "unit"], maintain_order="left").with_columns(
            pl.col("new").alias("score")).drop("new")
        tail = ranking.filter(pl.col("rank") > self.pool)
        return Tables(ranking=ranked(pl.concat([scored, below(scored, tail)], how="diagonal")))

    def _vectors(self, units: pl.DataFrame, tables: Tables, store: Store) -> Floats:
        """Return vectors (n, dim) of unit length, or of zeros, for these sorted units."""
        passages = passages_of(units, tables, ("user", "assistant"))
        texts = passages.select("text_id", "text").unique("text_id", maintain_order=True)
        vectors = store.vectors(self.embedder, texts, "document")
        at = passages.join(texts.select("text_id").with_row_index("at"), on="text_id", maintain_order="left")
        sums = np.zeros((units.height, vectors.shape[1]), np.float32)
        np.add.at(sums, units["unit"].search_sorted(at["unit"]).to_numpy(), vectors[at["at"].to_numpy()])
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        return (sums / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def greedy(scores: np.ndarray, vectors: Floats, units: np.ndarray, balance: float) -> np.ndarray:
    """Return the value with which each of n units is chosen, in the order of the input.

    scores: (n,); vectors: (n, d) of unit length; units: (n,), which decide ties.

    >>> greedy(np.array([1.0, .9, .5]), np.eye(3, dtype=np.float32)[[0, 0, 1]], np.arange(3), .5).tolist()
    [0.5, -0.05, 0.25]
    """
    values = np.zeros(len(scores))
    left, nearest = np.arange(len(scores)), np.zeros(len(scores))
    while len(left):
        now = np.round(balance * scores[left] - (1 - balance) * nearest[left], DIGITS)
        best = left[np.lexsort((units[left], -now))[0]]
        values[best] = now[left == best][0]
        nearest = np.maximum(nearest, vectors @ vectors[best])
        left = left[left != best]
    return values
