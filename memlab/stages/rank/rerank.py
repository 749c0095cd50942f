"""Reranking of the head of a ranking by a pair scorer."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
import polars as pl
from pydantic import Field, model_validator

from memlab.models.protocols import PairScorer
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import DIGITS, SESSION, Tables, text_hash, with_text
from memlab.stages.rank.fusion import NonNegative, Normaliser, Scorer, check_names, fits
from memlab.stages.rank.units import rank_units, signals_of
from memlab.store import Store
from memlab.support.errors import MemlabError


@stage
class PoolReranker:
    """Base of the rerankers: judge the first ``pool`` units of each question; the others follow in their old order.

    ``weights`` mixes the judgement ("rerank") with the first stage's score ("first") or a lane, normalised over the
    pool; signals that it does not name do not count. The judgement becomes the column ``name``.
    """

    tie: ClassVar[float] = 0.0  # a difference by first-stage rank, spread over the pool, that keeps the order of ties

    pool: Annotated[int, Field(ge=1)] = 50  # first units that are judged; recall at 50 cannot change
    name: Annotated[str, Field(min_length=1)] = "rerank"  # column of the ranking
    # whose turns are judged
    roles: tuple[Literal["user", "assistant"], ...] = Field(default=("user", "assistant"), strict=False)
    # the judgement alone; {rerank: 1, first: 0.5} mixes in the first stage
    weights: dict[str, NonNegative] = Field(default_factory=lambda: {"rerank": 1.0})
    normaliser: Normaliser = "zscore"  # over the pool, so that all signals have one scale

    @model_validator(mode="after")
    def _some_weight(self) -> PoolReranker:
        if not any(self.weights.values()):
            raise ValueError("no weight is above 0; write {rerank: 1}")
        return self

    def head(self, ranking: pl.DataFrame) -> pl.DataFrame:
        """Return the units to be judged; raise MemlabError if the ranking has a column ``name`` already."""
        if self.name in ranking.columns:
            raise MemlabError(f"the ranking has a signal '{self.name}' already", where="rank/rerank, name",
                              fix="choose another name")
        return ranking.filter(pl.col("rank") <= self.pool)

    def reorder(self, head: pl.DataFrame, ranking: pl.DataFrame) -> pl.DataFrame:
        """Return the judged head by its mixed scores, and the units of the ranking below the pool behind it."""
        named = head.with_columns(pl.col("score").alias("first"), pl.col(self.name).alias("rerank"))
        available = ["first", "rerank", *(s for s in signals_of(head) if s not in (self.name, "first", "rerank"))]
        check_names("rank/rerank, weights", self.weights, available)
        signals = [s for s in available if any(fits(name, s) for name in self.weights)]
        mixed = Scorer(normaliser=self.normaliser, weights=self.weights).fuse(named, signals)
        mixed = mixed.with_columns(pl.col("score") - self.tie * pl.col("rank") / self.pool).select(head.columns)
        tail = ranking.filter(pl.col("rank") > self.pool).with_columns(pl.lit(None, pl.Float64).alias(self.name))
        return rank_units(pl.concat([mixed, below(mixed, tail)], how="diagonal"))


@stage
class Rerank(PoolReranker):
    """Rerank by a pair scorer.

    A unit is judged turn by turn ("Speaker: text" where a speaker is known) and takes its best turn's score: whole
    sessions exceed what pair scorers read. At level memory the memory's key is judged. A unit without a text to judge
    (blank, or of other ``roles``) takes the lowest score of its pool.
    """

    reads: ClassVar = ("ranking", "units", "questions", "turns", "texts", "memories")
    writes: ClassVar = ("ranking",)

    scorer: PairScorer

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the ranking with the new signal, the head of each list reordered."""
        head = self.head(tables["ranking"])
        judged = self._judge(head, tables, store).rename({"judged": self.name})
        head = head.join(judged, on=["question", "unit"], how="left", maintain_order="left")
        return Tables(ranking=self.reorder(head, tables["ranking"]))

    def _judge(self, head: pl.DataFrame, tables: Tables, store: Store) -> pl.DataFrame:
        """Return (question, unit, judged): the best score among a unit's passages."""
        passages = passages_of(head.select("unit").unique(), tables, self.roles)
        questions = with_text(tables["questions"], tables["texts"])
        queries, documents = (rows.select("text_id", "text").unique("text_id", maintain_order=True)
                              for rows in (questions, passages))
        rows = (
            head.select("question", "unit")
            .join(questions.select("question", "text_id").join(_number(queries, "q"), on="text_id"), on="question")
            .join(passages.join(_number(documents, "p"), on="text_id"), on="unit")
            .select("question", "unit", "q", "p")
        )
        pairs = rows.select("q", "p").unique().sort("q", "p")
        scores = store.pair_scores(self.scorer, queries, documents, pairs.to_numpy().astype(np.int64))
        scored = pairs.with_columns(pl.Series("judged", np.asarray(scores, np.float64)))
        return rows.join(scored, on=["q", "p"]).group_by("question", "unit").agg(pl.col("judged").max())


def passages_of(units: pl.DataFrame, tables: Tables, roles: tuple[str, ...]) -> pl.DataFrame:
    """Return (unit, text_id, text): the passages of these units (a column), turn after turn, blank ones left out."""
    units = tables["units"].join(units, on="unit", how="semi")
    if units["level"].eq("memory").any():
        read = units.join(tables["memories"].select(pl.col("memory").alias("unit"), "key_id"), on="unit")
        read, passage = with_text(read, tables["texts"], "key_id"), pl.col("text")
    else:
        turns = tables["turns"].filter(pl.col("role").is_in(roles))
        read = units.explode("turns").join(turns, left_on=[*SESSION, "turns"], right_on=[*SESSION, "turn"],
                                           maintain_order="left")
        read = with_text(read, tables["texts"])
        passage = pl.when(pl.col("speaker").is_null()).then(pl.col("text")).otherwise(
            pl.concat_str("speaker", pl.lit(": "), "text"))
    passages = read.filter(pl.col("text").str.strip_chars().str.len_bytes() > 0).select("unit", passage.alias("text"))
    return passages.with_columns(pl.Series("text_id", [text_hash(t) for t in passages["text"]], pl.String))


def _number(texts: pl.DataFrame, name: str) -> pl.DataFrame:
    return texts.select("text_id", pl.int_range(pl.len(), dtype=pl.Int64).alias(name))


def below(head: pl.DataFrame, tail: pl.DataFrame) -> pl.DataFrame:
    """Shift the old scores of the tail to lie just below the head, so that no drop appears where the pool ends."""
    floor = head.group_by("question").agg(pl.col("score").min().round(DIGITS).alias("floor"))
    shift = pl.col("floor") - 10.0**-DIGITS - pl.col("score").max().over("question")
    return tail.join(floor, on="question", how="left", maintain_order="left").with_columns(
        pl.col("score") + shift).drop("floor")
