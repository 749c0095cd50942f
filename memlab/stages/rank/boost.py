"""Boosts: signals, or the time that a question names, mixed into the scores of a ranking."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field, model_validator

from memlab.pipeline.stage import stage
from memlab.pipeline.tables import DIGITS, SESSION, Tables
from memlab.stages.rank.fusion import Scorer, check_names, fits
from memlab.stages.rank.rerank import below
from memlab.stages.rank.signals import Signal
from memlab.stages.rank.units import rank_units, signals_of, with_ranks
from memlab.store import Store
from memlab.support.errors import MemlabError

FIRST = "first"
"""The signal that is the ranking's present score."""

EARLIER = "boosted"
"""The signal that is the score of an earlier boost of this name; without one, the present score."""


@stage
class Boost(Scorer):
    """Add signals to the ranking as columns, and score its first ``depth`` units again with the ``Scorer``.

    With ``weights``, the signals that they name are fused and no others: ``first`` (the present score), new signals,
    and columns of the ranking (a lane, ``llm``, ``rerank``). Without weights, ``first`` and the new signals that no
    factor and no floor names. Factors and floors may name any of them. A signal with the weight 0 may be missing, so
    that an arm can leave out the stage that makes it.

    ``fill`` replaces the nulls of a signal ({llm: 3} for units outside a reranker's pool, and for all units without a
    reranker); the column keeps them. Equal scores keep their order. Units below ``depth`` follow in their old order;
    with a threshold or floors they are dropped, since they were not checked. ``name`` keeps the new score in a column
    for a later slot; ``boosted`` means the present score if no earlier boost has this name.
    """

    reads: ClassVar = ("ranking", "units", "questions", "queries", "classes", "memories", "edges", "sessions", "turns",
                       "texts")
    writes: ClassVar = ("ranking",)

    signals: tuple[Signal, ...] = Field(default=(), strict=False)
    depth: Annotated[int, Field(ge=1)] | None = 200  # first units that are scored again; the others follow
    name: Annotated[str, Field(min_length=1)] | None = None  # column that keeps the new score for a later slot

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
        within = pl.lit(True) if self.depth is None else pl.col("rank") <= self.depth
        head = ranking.filter(within)
        inputs = tables.updated({"ranking": head})
        for signal in self.signals:
            values = signal.values(inputs).select("question", "unit", pl.col("value").alias(signal.name))
            head = head.join(values, on=["question", "unit"], how="left", validate="1:1", maintain_order="left")
        scored = self._rescore(head)
        tail = ranking.filter(~within) if self.threshold is None and not self.floors else ranking.clear()
        rows = pl.concat([scored, below(scored, tail)], how="diagonal").with_columns(
            pl.col("score").round(DIGITS) + 0.0)
        order = rows.sort("question", "score", "rank", descending=[False, True, False])
        return Tables(ranking=with_ranks(order).select(scored.columns))

    def _rescore(self, head: pl.DataFrame) -> pl.DataFrame:
        """Return the units of the head that are kept, with their new scores."""
        columns = head.columns
        if EARLIER in self.weights and EARLIER not in columns:
            head = head.with_columns(pl.col("score").alias(EARLIER))
        head = head.with_columns(pl.lit(None, pl.Float64).alias(name) for name in self.fill
                                 if not any(fits(name, s) for s in signals_of(head)))
        available = [FIRST, *signals_of(head)]
        missing = {name for name, weight in self.weights.items()
                   if not weight and not any(fits(name, s) for s in available)}
        weights = {name: weight for name, weight in self.weights.items() if name not in missing}
        fill = {name: value for name, value in self.fill.items() if name not in missing}
        for place, names in (("weights", weights), ("fill", fill), ("factors", self.factors), ("floors", self.floors)):
            check_names(f"rank/boost, {place}", names, available)

        def match(names: Iterable[str]) -> set[str]:
            return {s for s in available if any(fits(name, s) for name in names)}

        limited = match([*self.factors, *self.floors])
        weighted = match(weights) if weights else {FIRST, *({s.name for s in self.signals} - limited)}
        used = [s for s in available if s in weighted | limited]
        unweighted = {s: 0.0 for s in used if s not in weighted | match(self.factors)}
        normaliser = self.normaliser
        if isinstance(normaliser, dict):
            normaliser = {name: value for name, value in normaliser.items() if name not in missing}
            check_names("rank/boost, normaliser", normaliser, available)
            normaliser = {name: value for name, value in normaliser.items() if any(fits(name, s) for s in used)}
        fill = {name: value for name, value in fill.items() if any(fits(name, s) for s in used)}
        scorer = Scorer(method=self.method, normaliser=normaliser, weights=weights | unweighted, fill=fill,
                        factors=self.factors, floors=self.floors, threshold=self.threshold, rrf_k=self.rrf_k)
        new = scorer.fuse(head.with_columns(pl.col("score").alias(FIRST)), used).select("question", "unit", "score")
        kept = head.drop("score").join(new, on=["question", "unit"], maintain_order="left").select(columns)
        return kept if self.name is None else kept.with_columns(pl.col("score").alias(self.name))


@stage
class TimeWindowBoost:
    """Boost units dated within a time window of their question's queries.

    Questions without a window, or without a unit in it, keep their ranking and scores. A memory is dated by
    ``happened_on`` if it is known, else like turns and sessions by the session's day.
    """

    reads: ClassVar = ("ranking", "units", "queries", "sessions", "memories")
    writes: ClassVar = ("ranking",)

    tolerance_days: Annotated[int, Field(ge=0)] = 2  # widens windows: events are often mentioned a day or two later
    # added to scores inside, in standard deviations of the question's scores; null: they come before all others
    strength: Annotated[float, Field(gt=0)] | None = 1.0

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking, reordered; its columns stay."""
        ranking = tables["ranking"]
        inside = self._inside(tables)
        if inside.is_empty():
            return Tables(ranking=ranking)
        touched = ranking.join(inside.select("question").unique(), on="question", how="semi").join(
            inside.with_columns(pl.lit(True).alias("inside")), on=["question", "unit"], how="left",
            maintain_order="left")
        score = pl.col("score")
        step = (score.max() - score.min() + 1.0 if self.strength is None else self.strength * score.std(ddof=0)).over(
            "question")
        moved = rank_units(touched.with_columns(
            pl.when("inside").then(score + step).otherwise(score).alias("score")).drop("inside"))
        rest = ranking.join(inside, on="question", how="anti")
        return Tables(ranking=pl.concat([rest, moved.select(rest.columns)]).sort("question", "rank"))

    def _inside(self, tables: Tables) -> pl.DataFrame:
        """Return the pairs (question, unit) of ranked units that lie in a window."""
        slack = pl.duration(days=self.tolerance_days)
        windows = tables["queries"].filter(pl.col("window").is_not_null()).select(
            "question", (pl.col("window").list.first().dt.date() - slack).alias("start"),
            (pl.col("window").list.last().dt.date() + slack).alias("end"))
        if windows.is_empty():
            return pl.DataFrame(schema={"question": pl.Int32, "unit": pl.Int64})
        units = tables["units"].select("unit", *SESSION, "level").join(
            tables["sessions"].select(*SESSION, "said_on"), on=SESSION, how="left")
        own = tables["memories"].select(pl.col("memory").alias("unit"), pl.lit("memory").alias("level"), "happened_on")
        days = units.join(own, on=["unit", "level"], how="left").select(
            "unit", pl.coalesce("happened_on", "said_on").dt.date().alias("day"))
        return (
            tables["ranking"].select("question", "unit").join(windows, on="question").join(days, on="unit")
            .filter(pl.col("day").is_between("start", "end"))
            .select("question", "unit").unique(maintain_order=True)
        )
