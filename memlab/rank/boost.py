"""What else is known of a unit, mixed into its score: before a reranker is asked, or after it has spoken."""

from __future__ import annotations

from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field, model_validator

from memlab.errors import MemlabError
from memlab.rank.fusion import Scorer, check_names, fits
from memlab.rank.rerank import below
from memlab.rank.signals.protocol import Signal
from memlab.rank.units import signals_of, with_ranks
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import DIGITS, Tables

SIGNAL_READS = ("ranking", "units", "questions", "queries", "classes", "memories", "edges", "sessions", "turns",
                "texts")
"""Tables that signals are handed."""

FIRST = "first"
"""The ranking's present score, as a signal."""

KEPT = "boosted"
"""The score that an earlier boost kept under this name, as a signal; the present score where none did."""


@stage
class Boost(Scorer):
    """Add signals to the ranking as columns, and score its first ``depth`` units anew by the one ``Scorer``.

    What counts: with ``weights``, the signals that they name and nothing else: ``first`` (the present score), new
    signals, and columns that are there already (a lane, ``llm``, ``rerank``). Without weights, ``first`` and the new
    signals that no factor and no floor names. Factors and floors speak of any of them. A name with the weight 0 need
    not be there, so that an arm can leave out a stage and its share.

    ``fill`` is the value of a signal for units that it does not reach, in place of the lowest ({llm: 3} for units
    outside a reranker's pool, and for all where nobody reranked); the column keeps its nulls. Equal scores keep their
    order. The units below ``depth`` follow in their old order; with a threshold or floors they go, since nobody has
    held them against it. ``name`` keeps the new score in a column of that name, for a later slot; a weight for
    ``boosted`` means the present score where nobody kept one, so that an arm can leave out the earlier boost.
    """

    reads: ClassVar = SIGNAL_READS
    writes: ClassVar = ("ranking",)

    signals: tuple[Signal, ...] = Field(default=(), strict=False)
    # signal -> its value for units that it does not reach; else the lowest
    fill: dict[str, float] = Field(default_factory=dict)
    depth: Annotated[int, Field(ge=1)] | None = 200  # first units that are scored anew; the others follow
    name: Annotated[str, Field(min_length=1)] | None = None  # a column that keeps the new score, for a later slot

    @model_validator(mode="after")
    def _something_to_do(self) -> Boost:
        names = [s.name for s in self.signals] + ([self.name] if self.name else [])
        twice = sorted({n for n in names if names.count(n) > 1 or n == FIRST})
        if twice:
            raise ValueError(f"two signals cannot be called '{twice[0]}'")
        if not (self.signals or self.weights or self.factors or self.floors or self.threshold is not None):
            raise ValueError("there is nothing to mix in; give signals, or weights for columns of the ranking")
        if self.weights and not any(self.weights.values()):
            raise ValueError(f"no weight is above 0; write {{{FIRST}: 1}}")
        return self

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with the new columns, its head in the new order."""
        ranking = tables["ranking"]
        if ranking.is_empty():
            return Tables(ranking=ranking)
        for name in [*(s.name for s in self.signals), *([self.name] if self.name else [])]:
            if name in ranking.columns:
                raise MemlabError(f"the ranking has a signal '{name}' already", where="rank/boost",
                                  fix="choose another name")
        near = pl.lit(True) if self.depth is None else pl.col("rank") <= self.depth
        head = ranking.filter(near)
        here = tables.updated({"ranking": head})
        for signal in self.signals:
            values = signal.values(here).select("question", "unit", pl.col("value").alias(signal.name))
            head = head.join(values, on=["question", "unit"], how="left", validate="1:1", maintain_order="left")
        scored = self._rescored(head)
        tail = ranking.filter(~near) if self.threshold is None and not self.floors else ranking.clear()
        rows = pl.concat([scored, below(scored, tail)], how="diagonal").with_columns(
            pl.col("score").round(DIGITS) + 0.0)
        order = rows.sort("question", "score", "rank", descending=[False, True, False])
        return Tables(ranking=with_ranks(order).select(scored.columns))

    def _rescored(self, head: pl.DataFrame) -> pl.DataFrame:
        """Return the units of the head that are kept, with their new scores."""
        shown = head.columns
        if KEPT in self.weights and KEPT not in shown:
            head = head.with_columns(pl.col("score").alias(KEPT))
        head = head.with_columns(pl.lit(None, pl.Float64).alias(name) for name in self.fill
                                 if not any(fits(name, s) for s in signals_of(head)))
        known = [FIRST, *signals_of(head)]
        unused = {name for name, weight in self.weights.items()
                  if not weight and not any(fits(name, s) for s in known)}
        weights = {name: weight for name, weight in self.weights.items() if name not in unused}
        fill = {name: value for name, value in self.fill.items() if name not in unused}
        for place, names in (("weights", weights), ("fill", fill), ("factors", self.factors), ("floors", self.floors)):
            check_names(f"rank/boost, {place}", names, known)
        how = self.normaliser
        if isinstance(how, dict):
            how = {name: value for name, value in how.items() if name not in unused}
            check_names("rank/boost, normaliser", how, known)
        flags = {s for s in known if any(fits(name, s) for name in self.factors)}
        spoken_of = {s for s in known if any(fits(name, s) for name in (*self.factors, *self.floors))}
        counting = {s for s in known if any(fits(name, s) for name in weights)} if weights else {
            FIRST, *({s.name for s in self.signals} - spoken_of)}
        used = [s for s in known if s in counting | spoken_of]
        silent = {s: 0.0 for s in used if s not in counting | flags}
        if isinstance(how, dict):
            how = {name: value for name, value in how.items() if any(fits(name, s) for s in used)}
        scorer = Scorer(method=self.method, normaliser=how, weights=weights | silent, factors=self.factors,
                        floors=self.floors, threshold=self.threshold, rrf_k=self.rrf_k)
        filled = head.with_columns(
            pl.col("score").alias(FIRST),
            *(pl.col(s).fill_null(value) for name, value in fill.items() for s in known if fits(name, s)))
        new = scorer.scored(filled, used).select("question", "unit", "score")
        kept = head.drop("score").join(new, on=["question", "unit"], maintain_order="left").select(shown)
        return kept if self.name is None else kept.with_columns(pl.col("score").alias(self.name))
