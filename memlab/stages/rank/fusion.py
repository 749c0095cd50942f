"""Score fusion: of first-stage lanes, of boosts, and of the first stage with a reranker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Annotated, Literal

import polars as pl
from pydantic import Field, model_validator

from memlab.pipeline.stage import stage
from memlab.pipeline.tables import DIGITS
from memlab.support.errors import MemlabError, did_you_mean

Method = Literal["rrf", "weighted", "combmnz", "calibrated_max"]
Normaliser = Literal["none", "minmax", "zscore", "max", "reciprocal", "reciprocal0"]
Normalisers = Normaliser | dict[str, Normaliser]
"""One for all signals, or one per signal; signals that a mapping does not name stay raw."""
NonNegative = Annotated[float, Field(ge=0)]
BY_WORDS = "lexical"
"""The search whose hits are the texts that share a word with the query; all others score 0."""
Each = Callable[[pl.Expr], pl.Expr]
"""``per_question`` or ``over_all``."""


@stage
class Scorer:
    """Fuse signals into one score per unit, for each question.

    A null means that the signal has no value for the unit. With s' the normalised signal and w its weight:

    * ``rrf``: sum of w / (rrf_k + rank), no term for a null (Cormack, Clarke, Buettcher, SIGIR 2009). Equal
      signals share one rank (dense), so the turns of a session found by a session lane rank as that session.
    * ``weighted``: sum of w s'. A null takes its value in ``fill``, else the lowest of its signal for that question; in
      a search by words 0, the score of a text without a word of the question.
    * ``combmnz``: the sum of ``weighted`` times the number of signals that have a value (Fox and Shaw, TREC-2, 1994).
    * ``calibrated_max``: max of w / (1 + exp(-s')); meant for z-scores, whose logistic
      reads as a probability-like share. With equal weights it orders units by their largest z-score. (Our form:
      public accounts of a calibrated maximum beating RRF do not state theirs.)

    Normalisers work on all units of one question, after nulls are filled: ``minmax`` (s - min)/(max - min),
    ``zscore`` (s - mean)/population deviation, ``max`` s/max (0 where the maximum is not positive). A constant
    signal is 0 under ``minmax`` and ``zscore``. Two use ranks as ``rrf`` does, with 0 for a null:
    ``reciprocal`` is 1/(1 + rank) with ranks from 1 (the text score of Gimli's memory search), ``reciprocal0`` the
    same with ranks from 0.

    >>> lanes = pl.DataFrame({"question": [0, 0, 0], "a": [3.0, 2.0, 1.0], "b": [None, 9.0, 5.0]})
    >>> Scorer(method="rrf").fuse(lanes, ["a", "b"])["score"].round(4).to_list()
    [0.0164, 0.0325, 0.032]
    """

    method: Method = "weighted"
    normaliser: Normalisers = "zscore"
    # lane ("dense:turn") or search ("dense") -> weight; others have weight 1
    weights: dict[str, NonNegative] = Field(default_factory=dict)
    # signal -> its value for units that have none; without an entry the lowest of the question
    fill: dict[str, float] = Field(default_factory=dict)
    factors: dict[str, NonNegative] = Field(default_factory=dict)  # signal in [0, 1] -> factor, e.g. {preference: 1.3}
    floors: dict[str, float] = Field(default_factory=dict)  # lane -> lowest raw score of a unit that is kept
    threshold: float | None = None  # lowest score that is kept
    rrf_k: Annotated[int, Field(ge=1)] = 60  # method rrf only

    @model_validator(mode="after")
    def _factors_need_a_sign(self) -> Scorer:
        chosen = self.normaliser.values() if isinstance(self.normaliser, dict) else (self.normaliser,)
        if self.factors and self.method == "weighted" and "zscore" in chosen:
            raise ValueError("a factor says little of z-scores, which lie around 0; choose minmax or max")
        return self

    def fuse(self, frame: pl.DataFrame, signals: Sequence[str]) -> pl.DataFrame:
        """Return the frame with its column ``score``, without units under the threshold or a floor.

        ``frame`` has ``question`` and a float column for each signal; it keeps its nulls. A weight, value to fill in,
        factor or floor names a signal, or all lanes of one search by the part before the colon. A factor f multiplies
        a unit's score by 1 + (f - 1) x signal, the signal being a flag or a share in [0, 1]; a score below 0 moves as
        far in the same direction. Raises MemlabError for names that fit no signal, and for NaN.
        """
        lanes = sorted(s for s in signals if not any(fits(f, s) for f in self.factors))
        check_names("scorer, weights", self.weights, lanes)
        check_names("scorer, fill", self.fill, signals)
        check_names("scorer, floors", self.floors, signals)
        check_names("scorer, factors", self.factors, signals)
        if isinstance(self.normaliser, dict):
            check_names("scorer, normaliser", self.normaliser, lanes)
        for signal in signals:
            if frame[signal].is_nan().any():
                raise MemlabError(f"signal '{signal}' holds NaN", where="scorer", fix="mend the model that made it")
        filled = frame.with_columns(pl.col(s).fill_null(value) for name, value in self.fill.items()
                                    for s in signals if fits(name, s))
        each = per_question if frame["question"].n_unique() > 1 else over_all  # a live question is alone
        terms = [self._term(lane, each).alias(f"\0{lane}") for lane in lanes if self._weight(lane) > 0]
        if not terms:
            raise MemlabError("no signal has a weight above 0", where="scorer", fix="give one a positive weight")
        if self.method == "calibrated_max":
            parts = filled.select(terms)
            total = parts.select(pl.max_horizontal(pl.all())).to_series()
        else:  # added in one fixed order, so that the same signals give the same bits
            total = reduce(lambda a, b: a + b, filled.select(terms).get_columns())
        if self.method == "combmnz":
            total = total * frame.select(pl.sum_horizontal(pl.col(lanes).is_not_null())).to_series()
        for name, factor in self.factors.items():
            for flag in (s for s in signals if fits(name, s)):
                total = total + total.abs() * (factor - 1) * filled[flag].fill_null(0.0)
        kept = pl.lit(True) if self.threshold is None else pl.col("score") >= self.threshold
        for name, floor in self.floors.items():
            kept = kept & pl.any_horizontal(*(pl.col(s).fill_null(-float("inf")) >= floor
                                              for s in signals if fits(name, s)))
        scored = frame.with_columns(total.alias("score"))
        if self.threshold is None and not self.floors:
            return scored
        return scored.filter(filled.with_columns(scored["score"]).select(kept).to_series())

    def _weight(self, lane: str) -> float:
        return self.weights.get(lane, self.weights.get(lane.split(":")[0], 1.0))

    def _normaliser(self, lane: str) -> Normaliser:
        if isinstance(self.normaliser, dict):
            return self.normaliser.get(lane, self.normaliser.get(lane.split(":")[0], "none"))
        return self.normaliser

    def _term(self, lane: str, each: Each) -> pl.Expr:
        weight = self._weight(lane)
        if self.method == "rrf":
            return (weight / (self.rrf_k + ranks(lane, each))).fill_null(0.0)
        value = normalise(lane, self._normaliser(lane), each)
        return weight / (1 + (-value).exp()) if self.method == "calibrated_max" else weight * value


def per_question(value: pl.Expr) -> pl.Expr:
    """Compute a value of a column for each question."""
    return value.over("question")


def over_all(value: pl.Expr) -> pl.Expr:
    """Compute a value of a column for all rows, which are of one question, in a fifth of the time."""
    return value


def ranks(signal: str, each: Each = per_question) -> pl.Expr:
    """Rank a column from 1 within each question; equal values share one rank (dense), nulls have none."""
    return each(pl.col(signal).round(DIGITS).rank("dense", descending=True))


def normalise(signal: str, how: Normaliser, each: Each = per_question) -> pl.Expr:
    """Normalise a column within each question; a null takes the lowest value there, or 0 if all are null.

    In a search by words a null is 0, or lower if some score is.
    """
    if how in ("reciprocal", "reciprocal0"):
        return (1 / (ranks(signal, each) + (how == "reciprocal"))).fill_null(0.0)
    column = pl.col(signal)
    if fits(BY_WORDS, signal):  # its lowest hit shares a word
        column = column.fill_null(pl.min_horizontal(each(column.min()), 0.0))
    low, high = each(column.min()), each(column.max())
    value = column.fill_null(low).fill_null(0.0)
    if how == "none":
        return value
    if how == "max":
        return pl.when(high > 0).then(value / high).otherwise(0.0)
    if how == "minmax":
        return pl.when(high > low).then((value - low) / (high - low)).otherwise(0.0)
    mean, deviation = each(value.mean()), each(value.std(ddof=0))
    return pl.when(high > low).then((value - mean) / deviation).otherwise(0.0)


def fits(name: str, signal: str) -> bool:
    """Return whether a name means a signal: its whole name, or the search before the colon.

    >>> fits("dense", "dense:turn"), fits("dense:turn", "dense:session")
    (True, False)
    """
    return name in (signal, signal.split(":")[0])


def check_names(where: str, names: Iterable[str], signals: Sequence[str]) -> None:
    """Raise MemlabError for a name that fits none of the signals."""
    for name in names:
        if not any(fits(name, s) for s in signals):
            raise MemlabError(f"no signal is called '{name}'", where=where, fix=did_you_mean(name, signals))
