"""Probability: the estimated chance, for every ranked unit, that it is evidence.

Logistic regression over ``memlab.learn.probability.features``, fitted and applied on disjoint folds, or applied from a
saved fit::

    python -m memlab.learn.probability file=FIT.json data=locomo data.path=FILE    fits on all, saves FIT.json
    memlab run rank/select=marginal learn/probability=loaded learn.probability.path=FIT.json data=...
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

import numpy as np
import polars as pl
from pydantic import Field, model_validator

from memlab.data.groups import GroupBy
from memlab.errors import MemlabError
from memlab.learn.folds import FoldCount, folds
from memlab.learn.labels import evidence_units
from memlab.learn.probability.blend import Blend, ModelName, fit_blend
from memlab.learn.probability.choice import chosen_value
from memlab.learn.probability.features import FEATURES, READS, Matrix, features
from memlab.learn.probability.model import FORMAT, Depth, ProbabilityModel, Weights, fit, load
from memlab.learn.probability.threshold import (
    VALUES,
    Prices,
    ValueChoice,
    Values,
    prices,
    with_always,
    with_shown_from,
    with_value,
)
from memlab.rank.select import need
from memlab.stage import LocalPath, name_of, stage
from memlab.store import Store
from memlab.tables import Tables

Penalty = Annotated[float, Field(gt=0)]

L2 = 10.0
"""Penalty on standardised weights, beside a loss summed over units; 1 and 10 differ little on the dev slices."""


def known_evidence(tables: Tables) -> pl.DataFrame:
    """Return the evidence of the questions that count: known turns; sessions where no turn of any question is known."""
    evidence = tables["evidence"].join(tables["gold"].filter("scored"), on="question", how="semi")
    turns = evidence.filter(pl.col("turn").is_not_null())
    return turns if turns.height else evidence


def labels(rows: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Return the rows (question, unit, ...) of the questions that count, with ``held``: 1 for evidence, else 0."""
    evidence = known_evidence(tables)
    held = evidence_units(rows, tables["units"], evidence).with_columns(pl.lit(1.0).alias("held"))
    return rows.join(evidence, on="question", how="semi", maintain_order="left").join(
        held, on=["question", "unit"], how="left", maintain_order="left").with_columns(pl.col("held").fill_null(0.0))


def joined(ranking: pl.DataFrame, rows: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    """Return the ranking with these columns of rows (question, unit, ...) in place of its own; null beyond the rows."""
    return ranking.drop(columns, strict=False).join(
        rows.select("question", "unit", *columns), on=["question", "unit"], how="left", maintain_order="left")


def measured(ranking: pl.DataFrame) -> pl.DataFrame:
    """Return the ranking; raise MemlabError if it has units and no ``tokens``."""
    need(ranking, "tokens", "run read/measure before the selection")
    return ranking


def empty_rows() -> pl.DataFrame:
    """Return the estimates of a ranking without units."""
    return pl.DataFrame(schema={"question": pl.Int32, "unit": pl.Int64, **dict.fromkeys(ADDED, pl.Float64)})


ADDED = ("probability", "value", "shown_from")
"""Columns that the selection adds to a ranking."""


@stage(sees=("gold",), fits="all")
class CrossFitProbability:
    """Estimate each question's units by a model fitted on the other folds (memlab.learn.folds).

    The estimate depends neither on the label of the question nor on those of questions that share its evidence.
    Questions that do not count in retrieval averages are estimated, not fitted on. On a ranking that is cross-fitted
    itself, the scores of the other folds have seen the fold (memlab.learn.probability.nested avoids it).
    """

    reads: ClassVar[tuple[str, ...]] = (*READS, "evidence", "gold")
    writes: ClassVar = ("ranking",)

    folds: FoldCount = 5  # fewer where the data has fewer groups; all: leave one group out
    by: GroupBy = "auto"  # groups: corpus where a corpus has several questions, else evidence sessions of one text
    seed: int = 0
    depth: Depth = 200  # ranks beyond have no estimate, and are never shown
    l2: Penalty = L2  # penalty on standardised weights, beside a loss summed over units
    model: ModelName = "logistic"  # blend: with boosted trees (LightGBM)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``probability``."""
        return Tables(ranking=joined(tables["ranking"], self._rows(tables), ["probability"]))

    def _rows(self, tables: Tables) -> pl.DataFrame:
        ranking = measured(tables["ranking"])
        if not ranking.height:
            return empty_rows()
        return pl.concat([rows.filter("held_out") for rows in self._by_fold(tables)])

    def _by_fold(self, tables: Tables, inner: bool = False) -> Iterator[pl.DataFrame]:
        """Yield, for each fold, all rows with ``probability`` by a model of the others, and with ``held_out``.

        With ``inner``, the rows of the other folds are estimated by models of half of them, as unsure as on new data.
        """
        fold_of = folds(tables["questions"], tables["evidence"], tables["turns"], self.folds, self.seed, self.by)
        fold_of = fold_of.join(tables["ranking"], on="question", how="semi")
        last = None
        for part, ranking in self.rankings(tables, fold_of):
            if ranking is not last:
                last = ranking
                rows, matrix = features(tables.updated({"ranking": ranking}), self.depth)
                fold = rows.join(fold_of, on="question", how="left", maintain_order="left")["fold"].to_numpy()
                known = labels(rows.with_row_index("row"), tables).select("row", "held")
                place, held = known["row"].to_numpy(), known["held"].to_numpy()
            others = np.unique(fold[fold != part])
            halves = [others[0::2], others[1::2]]
            seen = np.isin(fold[place], others)
            probability = self._fit(matrix[place[seen]], held[seen]).estimates(matrix)
            if inner and len(others) > 1:
                for one, other in (halves, halves[::-1]):
                    seen, scored = np.isin(fold[place], one), np.isin(fold, other)
                    probability[scored] = self._fit(matrix[place[seen]], held[seen]).estimates(matrix[scored])
            yield rows.with_columns(pl.Series("probability", probability), pl.Series("held_out", fold == part))

    def _fit(self, matrix: Matrix, held: Values) -> Weights | Blend:
        return fit(matrix, held, self.l2) if self.model == "logistic" else fit_blend(matrix, held, self.l2, self.seed)

    def rankings(self, tables: Tables, fold_of: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield each fold of (question, fold), and the ranking that its model is fitted on and applied to."""
        for part in fold_of["fold"].unique().sort():
            yield part, tables["ranking"]

    def valued(self, tables: Tables, value: ValueChoice, min_k: int, tokens: float = 500) -> pl.DataFrame:
        """Return (question, unit, probability, value, shown_from); thresholds by their cost on the other folds.

        ``value=auto``: the kind of value that does best on the other folds at budgets around ``tokens``, by estimates
        of models of half of these folds each. A model is as sure of its own folds as it is of them when it was fitted,
        so the mean tokens that result differ a little from those asked for; the recall at equal tokens does not depend
        on it.
        """
        if not measured(tables["ranking"]).height:
            return empty_rows()
        parts = []
        for rows in self._by_fold(tables, inner=value == "auto"):
            kind = value if value != "auto" else chosen_value(
                rows.filter(~pl.col("held_out")), tables["units"], known_evidence(tables), tokens, min_k)
            ready = with_always(with_value(rows, kind), min_k)
            parts.append(with_shown_from(ready.filter("held_out"), prices(ready.filter(~pl.col("held_out")))))
        return pl.concat(parts)


@stage
class LoadedProbability:
    """Estimate probabilities by a saved fit, for example from another benchmark."""

    reads: ClassVar = READS
    writes: ClassVar = ("ranking",)

    path: LocalPath

    @model_validator(mode="after")
    def _readable(self) -> LoadedProbability:
        load(self.path)
        return self

    def identity(self) -> dict[str, Any]:
        """Describe the content of the fit, not its path."""
        return {"is": name_of(type(self)),
                "fit": hashlib.blake2b(self.path.read_bytes(), digest_size=16).hexdigest()}

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``probability``."""
        return Tables(ranking=joined(tables["ranking"], self._rows(tables, load(self.path)), ["probability"]))

    def _rows(self, tables: Tables, model: ProbabilityModel) -> pl.DataFrame:
        if not measured(tables["ranking"]).height:
            return empty_rows()
        rows, matrix = features(tables, model.depth)
        return rows.with_columns(pl.Series("probability", model.estimates(matrix)))

    def valued(self, tables: Tables, value: ValueChoice, min_k: int, tokens: float = 500) -> pl.DataFrame:  # noqa: ARG002
        """Return (question, unit, probability, value, shown_from); thresholds by their cost on the data of the fit."""
        if value == "auto":
            raise MemlabError("a saved fit has no folds to choose the value on", where="rank.select.value",
                              fix="write unit, token or share, or choose learn/probability=crossfit")
        model = load(self.path)
        return with_shown_from(with_always(with_value(self._rows(tables, model), value), min_k), model.prices[value])


def fit_tables(tables: Tables, depth: int = 200, l2: float = L2) -> ProbabilityModel:
    """Fit on all questions of a finished run, to save the fit and apply it elsewhere.

    What thresholds cost is computed with cross-fitted estimates, which are as sure as those of new data.
    """
    measured(tables["ranking"])
    rows, matrix = features(tables, depth)
    known = labels(rows.with_row_index("row"), tables)
    model = fit(matrix[known["row"].to_numpy()], known["held"].to_numpy(), l2)
    ranking = CrossFitProbability(depth=depth, l2=l2).run(tables, Store())["ranking"]
    costs: dict[str, Prices] = {value: prices(with_always(with_value(ranking, value), 1)) for value in VALUES}
    return ProbabilityModel(format=FORMAT, depth=depth, features=FEATURES, mean=tuple(model.mean.tolist()),
                            scale=tuple(model.scale.tolist()), weights=tuple(model.weights.tolist()), bias=model.bias,
                            questions=known["question"].n_unique(), prices=costs)
