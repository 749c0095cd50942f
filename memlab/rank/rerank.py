"""A second, dearer opinion on the head of a ranking: a cross-encoder or late interaction over (question, turn)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
import polars as pl
from pydantic import Field, model_validator

from memlab.errors import MemlabError
from memlab.models.protocols import PairScorer
from memlab.rank.fusion import NonNegative, Normaliser, Scorer, check_names, fits
from memlab.rank.units import ranked, signals_of
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import DIGITS, SESSION, Tables, text_hash, with_text


@stage
class Rerank:
    """Reorder the first ``pool`` units of each question by a pair scorer; the others follow in their old order.

    A unit is judged turn by turn ("Speaker: text" where a speaker is known) and takes its best turn's score: whole
    sessions exceed what pair scorers read. At level memory the memory's key is judged. ``weights`` mixes the new
    signal ("rerank") with the first stage's score ("first") or a lane, normalised over the pool; what it does not
    name does not count. The new signal becomes the column ``name``. A unit without a text to judge (blank, or of
    other ``roles``) takes the lowest score of its pool.
    """

    reads: ClassVar = ("ranking", "units", "questions", "turns", "texts", "memories")
    writes: ClassVar = ("ranking",)

    scorer: PairScorer
    pool: Annotated[int, Field(ge=1)] = 50  # first units that are judged; recall at 50 cannot change
    name: Annotated[str, Field(min_length=1)] = "rerank"
    # whose turns are judged
    roles: tuple[Literal["user", "assistant"], ...] = Field(default=("user", "assistant"), strict=False)
    # its opinion alone; {rerank: 1, first: 0.5} mixes in the first stage
    weights: dict[str, NonNegative] = Field(default_factory=lambda: {"rerank": 1.0})
    normaliser: Normaliser = "zscore"  # over the pool, so that both opinions have one scale

    @model_validator(mode="after")
    def _some_weight(self) -> Rerank:
        if not any(self.weights.values()):
            raise ValueError("no weight is above 0; write {rerank: 1}")
        return self

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the ranking with the new signal, the head of each list reordered."""
        ranking = tables["ranking"]
        if self.name in ranking.columns:
            raise MemlabError(f"the ranking has a signal '{self.name}' already", where="rank/rerank, name",
                              fix="choose another name")
        head = ranking.filter(pl.col("rank") <= self.pool)
        judged = self._judge(head, tables, store).rename({"judged": self.name})
        head = head.join(judged, on=["question", "unit"], how="left", maintain_order="left")
        scored = self._mixed(head)
        tail = ranking.filter(pl.col("rank") > self.pool).with_columns(pl.lit(None, pl.Float64).alias(self.name))
        return Tables(ranking=ranked(pl.concat([scored, below(scored, tail)], how="diagonal")))

    def _mixed(self, head: pl.DataFrame) -> pl.DataFrame:
        named = head.with_columns(pl.col("score").alias("first"), pl.col(self.name).alias("rerank"))
        known = ["first", "rerank", *(s for s in signals_of(head) if s not in (self.name, "first", "rerank"))]
        check_names("rank/rerank, weights", self.weights, known)
        signals = [s for s in known if any(fits(name, s) for name in self.weights)]
        return Scorer(normaliser=self.normaliser, weights=self.weights).scored(named, signals).select(head.columns)

    def _judge(self, head: pl.DataFrame, tables: Tables, store: Store) -> pl.DataFrame:
        """Return (question, unit, judged): the best score among a unit's passages."""
        passages = passages_of(head.select("unit").unique(), tables, self.roles)
        asked = with_text(tables["questions"], tables["texts"])
        queries, documents = (rows.select("text_id", "text").unique("text_id", maintain_order=True)
                              for rows in (asked, passages))
        rows = (
            head.select("question", "unit")
            .join(asked.select("question", "text_id").join(_numbered(queries, "q"), on="text_id"), on="question")
            .join(passages.join(_numbered(documents, "p"), on="text_id"), on="unit")
            .select("question", "unit", "q", "p")
        )
        pairs = rows.select("q", "p").unique().sort("q", "p")
        scores = store.pair_scores(self.scorer, queries, documents, pairs.to_numpy().astype(np.int64))
        scored = pairs.with_columns(pl.Series("judged", np.asarray(scores, np.float64)))
        return rows.join(scored, on=["q", "p"]).group_by("question", "unit").agg(pl.col("judged").max())


def passages_of(wanted: pl.DataFrame, tables: Tables, roles: tuple[str, ...]) -> pl.DataFrame:
    """Return (unit, text_id, text): what is judged of each wanted unit, turn after turn, blank texts left out."""
    units = tables["units"].join(wanted, on="unit", how="semi")
    if units["level"].eq("memory").any():
        read = units.join(tables["memories"].select(pl.col("memory").alias("unit"), "key_id"), on="unit")
        read, passage = with_text(read, tables["texts"], "key_id"), pl.col("text")
    else:
        said = tables["turns"].filter(pl.col("role").is_in(roles))
        read = units.explode("turns").join(said, left_on=[*SESSION, "turns"], right_on=[*SESSION, "turn"],
                                           maintain_order="left")
        read = with_text(read, tables["texts"])
        passage = pl.when(pl.col("speaker").is_null()).then(pl.col("text")).otherwise(
            pl.concat_str("speaker", pl.lit(": "), "text"))
    shown = read.filter(pl.col("text").str.strip_chars().str.len_bytes() > 0).select("unit", passage.alias("text"))
    return shown.with_columns(pl.Series("text_id", [text_hash(t) for t in shown["text"]], pl.String))


def _numbered(texts: pl.DataFrame, name: str) -> pl.DataFrame:
    return texts.select("text_id", pl.int_range(pl.len(), dtype=pl.Int64).alias(name))


def below(head: pl.DataFrame, tail: pl.DataFrame) -> pl.DataFrame:
    """Shift the old scores of the tail to lie just below the head, so that no drop appears where the pool ends."""
    floor = head.group_by("question").agg(pl.col("score").min().round(DIGITS).alias("floor"))
    shift = pl.col("floor") - 10.0**-DIGITS - pl.col("score").max().over("question")
    return tail.join(floor, on="question", how="left", maintain_order="left").with_columns(
        pl.col("score") + shift).drop("floor")
