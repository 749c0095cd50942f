"""Probability: the estimated chance, for every ranked unit, that it is evidence; and selections by it.

Fitted and applied on disjoint folds, or applied from a saved fit::

    memlab train probability file=FIT.json data=locomo data.path=FILE    fits on all, saves FIT.json
    memlab train probability file=FIT.json data=synthetic data=custom data.path=FOLDER      on several data sets
    memlab run rank/select=marginal learn/probability=loaded learn.probability.path=FIT.json data=...
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import polars as pl
from pydantic import Field, model_validator

from memlab.learn import fits
from memlab.learn.fits import Depth, Matrix, Regression, SavedFit, Values, evidence_keys, stack
from memlab.learn.folds import CrossFitted, evidence_units, fold_numbers, scored_evidence
from memlab.learn.probability_model import READS, Blend, ModelName, ProbabilityModel, features, fit, fit_blend, load
from memlab.learn.ranker.cross_fit import without
from memlab.learn.ranker.features import NEEDED
from memlab.learn.ranker.model import Scores, apply
from memlab.learn.ranker.model import fit as fit_ranker
from memlab.learn.ranker.rescore import leading_turns, rescore, session_numbers
from memlab.learn.ranker.signals import FUSED
from memlab.learn.ranker.stage import LearnedScore, candidates, in_haystacks
from memlab.learn.threshold import VALUES, Value, prices, with_always, with_shown_from, with_value
from memlab.pipeline.stage import LocalPath, label_free, stage
from memlab.pipeline.tables import Tables
from memlab.stages.rank.adaptive_k import TopP
from memlab.stages.rank.select import Count, EachBudget, MeanBudget, need
from memlab.stages.rank.units import kind_of, rank_units
from memlab.store import Store
from memlab.support.errors import MemlabError

Penalty = Annotated[float, Field(gt=0)]

L2 = 10.0
"""Penalty on standardised weights, beside a loss summed over units; 1 and 10 differ little on the dev slices."""


def known_evidence(tables: Tables) -> pl.DataFrame:
    """Return the evidence of the questions that count: known turns; sessions where no turn of any question is known."""
    evidence = scored_evidence(tables)
    turns = evidence.filter(pl.col("turn").is_not_null())
    return turns if turns.height else evidence


def labels(rows: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Return the rows (question, unit, ...) of the questions that count, with ``held``: 1 for evidence, else 0."""
    evidence = known_evidence(tables)
    held = evidence_units(rows, tables["units"], evidence).with_columns(pl.lit(1.0).alias("held"))
    return rows.join(evidence, on="question", how="semi", maintain_order="left").join(
        held, on=["question", "unit"], how="left", maintain_order="left").with_columns(pl.col("held").fill_null(0.0))


def join_columns(ranking: pl.DataFrame, rows: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    """Return the ranking with these columns of rows (question, unit, ...) in place of its own; null beyond the rows."""
    return ranking.drop(columns, strict=False).join(
        rows.select("question", "unit", *columns), on=["question", "unit"], how="left", maintain_order="left")


def need_tokens(ranking: pl.DataFrame) -> pl.DataFrame:
    """Return the ranking; raise MemlabError if it has units and no ``tokens``."""
    need(ranking, "tokens", "run read/measure before the selection")
    return ranking


def empty_rows() -> pl.DataFrame:
    """Return the estimates of a ranking without units."""
    return pl.DataFrame(schema={"question": pl.Int32, "unit": pl.Int64, **dict.fromkeys(ADDED, pl.Float64)})


SHIPPED = Path(__file__).with_name("shipped")
"""The folder of the fits that memlab ships, one for each kind of ranking (docs/marginal_fit.md)."""

ADDED = ("probability", "value", "shown_from")
"""Columns that the selection adds to a ranking."""


@stage(sees=("gold",), fits="all")
class CrossFitProbability(CrossFitted):
    """Estimate each question's units by a model fitted on the other folds (memlab.learn.folds).

    The estimate depends neither on the label of the question nor on those of questions that share its evidence.
    Questions that do not count in retrieval averages are estimated, not fitted on. On a ranking that is cross-fitted
    itself, the scores of the other folds have seen the fold (``NestedProbability`` avoids it).
    """

    reads: ClassVar[tuple[str, ...]] = (*READS, "evidence", "gold")
    writes: ClassVar = ("ranking",)

    depth: Depth = 200  # ranks beyond have no estimate, and are never shown
    l2: Penalty = L2  # penalty on standardised weights, beside a loss summed over units
    model: ModelName = "logistic"  # blend: with boosted trees (LightGBM)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``probability``."""
        ranking = need_tokens(tables["ranking"])
        folds = [rows.filter("held_out") for rows in self._by_fold(tables)] if ranking.height else [empty_rows()]
        return Tables(ranking=join_columns(ranking, pl.concat(folds), ["probability"]))

    def _by_fold(self, tables: Tables) -> Iterator[pl.DataFrame]:
        """Yield, for each fold, all rows with ``probability`` by a model of the others, and with ``held_out``."""
        fold_of = self.fold_of(tables)
        fold_of = fold_of.join(tables["ranking"], on="question", how="semi")
        last = None
        for part, ranking in self.rankings(tables, fold_of):
            if ranking is not last:
                last = ranking
                rows, matrix = features(tables.updated({"ranking": ranking}), self.depth)
                fold = fold_numbers(rows, fold_of)
                known = labels(rows.with_row_index("row"), tables).select("row", "held")
                place, held = known["row"].to_numpy(), known["held"].to_numpy()
            seen = fold[place] != part
            probability = self._fit(matrix[place[seen]], held[seen]).estimates(matrix)
            yield rows.with_columns(pl.Series("probability", probability), pl.Series("held_out", fold == part))

    def _fit(self, matrix: Matrix, held: Values) -> Regression | Blend:
        return fit(matrix, held, self.l2) if self.model == "logistic" else fit_blend(matrix, held, self.l2, self.seed)

    def rankings(self, tables: Tables, fold_of: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield each fold of (question, fold), and the ranking that its model is fitted on and applied to."""
        for part in fold_of["fold"].unique().sort():
            yield part, tables["ranking"]

    def value_units(self, tables: Tables, value: Value, min_k: int) -> pl.DataFrame:
        """Return (question, unit, probability, value, shown_from); thresholds by their cost on the other folds.

        A model is as sure of its own folds as it is of them when it was fitted, so the mean tokens that result differ a
        little from those asked for; the recall at equal tokens does not depend on it.
        """
        if not need_tokens(tables["ranking"]).height:
            return empty_rows()
        parts = []
        for rows in self._by_fold(tables):
            ready = with_always(with_value(rows, value), min_k)
            parts.append(with_shown_from(ready.filter("held_out"), prices(ready.filter(~pl.col("held_out")))))
        return pl.concat(parts)


@stage(sees=("gold",), fits="all")
class NestedProbability(CrossFitProbability):
    """Estimate as ``CrossFitProbability`` does, for a ranking by ``ranker``, which is refitted without pairs of folds.

    A cross-fitted ranker scores the questions of one fold by a fit that has seen all other folds. A model of
    probabilities for fold f, fitted on such scores, would learn from rankers that have seen f. Here it learns from
    rankers that were fitted without f and without the fold that they score; f itself is scored by the ranker that was
    fitted without f. With n folds there are n (n - 1) / 2 more fits of the ranker.
    """

    reads: ClassVar = tuple(dict.fromkeys((*CrossFitProbability.reads, *NEEDED)))

    ranker: LearnedScore  # the stage that made the ranking

    @model_validator(mode="after")
    def _same_folds(self) -> NestedProbability:
        if self.ranker.model is not None:
            raise ValueError("a saved ranker has seen no gold of this data: choose learn/probability=crossfit")
        if (self.ranker.folds, self.ranker.by, self.ranker.recipe.seed) != (self.folds, self.by, self.seed):
            raise ValueError("folds, by and seed differ from those of the ranker")
        return self

    def rankings(self, tables: Tables, fold_of: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield each fold, and the ranking of all questions by rankers that have not seen it."""
        shown = tables["ranking"]
        need(shown, FUSED, "choose system=best_learned or rank/score=learned, without a roll-up")
        first = rank_units(shown.with_columns(pl.col(FUSED).alias("score")).drop("rank", "selected"))
        frame, label = candidates(tables.updated({"ranking": first}), self.ranker.depth)
        fold, session = fold_numbers(frame, fold_of), session_numbers(frame, tables["units"])
        parts = np.unique(fold).tolist()
        if len(parts) < 3:
            raise MemlabError(f"{len(parts)} folds leave no data without two of them", where="learn/probability=nested",
                              fix="use learn.folds=5 or more, on data with at least three groups of questions")
        shared = in_haystacks(frame, tables, fold_of)
        scores_of: dict[tuple[int, int], Scores] = {}  # (left out, scored): the scores of the rows of ``scored``
        for pair in combinations(parts, 2):
            kept = without(label, fold, shared, *pair)
            model = fit_ranker(frame, label, self.ranker.depth, self.ranker.recipe, kept=kept)
            for left_out, scored in (pair, pair[::-1]):
                scores_of[left_out, scored] = apply(model, frame.filter(fold == scored))
        for part in parts:
            scores = np.zeros(frame.height)
            for other in parts:
                if other != part:
                    scores[fold == other] = scores_of[part, other]
            own = fold_of.filter(pl.col("fold") == part)
            leads = leading_turns(frame, session, scores)
            nested = rescore(first, frame, scores, self.ranker.depth, leads).join(own, on="question", how="anti")
            yield part, pl.concat([shown.join(own, on="question", how="semi"), nested.select(shown.columns)])


@stage
class LoadedProbability(SavedFit):
    """Estimate probabilities by a saved fit, for example from another benchmark; of a folder by that of the ranking."""

    reads: ClassVar = READS
    writes: ClassVar = ("ranking",)

    path: LocalPath = SHIPPED  # a file of `memlab train probability`, or a folder of them; by default memlab's own

    def fits(self) -> list[ProbabilityModel]:
        """Return the fits; raise MemlabError if a file is none."""
        return [load(file) for file in self.files()]

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``probability``."""
        return Tables(ranking=join_columns(tables["ranking"], self._rows(tables)[0], ["probability"]))

    def _rows(self, tables: Tables) -> tuple[pl.DataFrame, ProbabilityModel]:
        """Return the estimates, and the fit that they are by; raise MemlabError if none is of such a ranking."""
        model = self.fit_of(kind_of(tables))
        if not need_tokens(tables["ranking"]).height:
            return empty_rows(), model
        rows, matrix = features(tables, model.depth)
        return rows.with_columns(pl.Series("probability", model.estimates(matrix))), model

    def fit_of(self, kind: Collection[str]) -> ProbabilityModel:
        """Return the fit of rankings of a kind (``kind_of``), or of more searches; raise MemlabError if there is none.

        One question may lack a search that found nothing for it.
        """
        if (model := next((one for one in self.fits() if {*one.kind}.issuperset(kind)), None)) is None:
            raise MemlabError(f"no saved fit here is of a ranking by {', '.join(sorted(kind))}",
                              where="learn/probability", fix=label_free(ByProbability))
        return model

    def value_units(self, tables: Tables, value: Value, min_k: int) -> pl.DataFrame:
        """Return (question, unit, probability, value, shown_from); thresholds by their cost on the data of the fit."""
        rows, model = self._rows(tables)
        return with_shown_from(with_always(with_value(rows, value), min_k), model.prices[value])


@stage
class ByProbability:
    """A selection by the probability of each unit."""

    writes: ClassVar = ("ranking",)
    adaptive: ClassVar = True  # the number of units differs by question: compared with a token-matched baseline
    training: ClassVar = ("probability file=FIT.json", "learn/probability=loaded learn.probability.path=FIT.json")

    probability: CrossFitProbability | LoadedProbability

    @property
    def reads(self) -> tuple[str, ...]:
        """Tables of the probability: a saved fit reads no gold."""
        return self.probability.reads

    def _rule(self) -> MeanBudget | TopP:
        """Return the rule for a ranking that has the estimates."""
        raise NotImplementedError

    def variations(self) -> Iterator[MeanBudget] | Iterator[TopP]:
        """Yield the rule with other budgets or shares, for a ranking that it has selected from."""
        return self._rule().variations()

    def without_labels(self) -> ByProbability:
        """Return the selection by the fit that memlab ships, for questions without labels."""
        return replace(self, probability=LoadedProbability())


@stage(sees=("gold",), fits="all")
class Marginal(ByProbability):
    """Select by the probability of each unit: one threshold for all questions, or the best of each one's budget.

    ``shown=threshold`` shows every unit whose value exceeds one threshold, chosen for ``tokens`` per question on
    average on other data: the other folds, or the data of a saved fit. ``shown=budget`` is its opponent: every question
    has the same budget and is filled in order of value. At least ``min_k`` units of a question are shown, or none at
    all behind the ``gate``.
    """

    tokens: Count = 500  # per question, by the pipeline's token counter: the mean, or each with shown=budget
    # unit: p; token: p / tokens; share: p / tokens / expected evidence units of the question
    value: Value = "share"
    shown: Literal["threshold", "budget"] = "threshold"
    min_k: Count = 1  # with shown=budget the first is always shown
    gate: Annotated[float, Field(ge=0, lt=1)] = 0.0  # nothing is shown where no unit's p exceeds it; 0: no gate

    def _rule(self) -> MeanBudget:
        return MeanBudget(tokens=self.tokens) if self.shown == "threshold" else EachBudget(tokens=self.tokens)

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the ranking with ``probability``, ``value``, ``shown_from`` (mean tokens) and ``selected``."""
        rows = self.probability.value_units(tables, self.value, self.min_k)
        ready = join_columns(tables["ranking"], rows, [*ADDED])
        likely = (pl.col("probability").max().over("question") > self.gate).fill_null(False) | (self.gate == 0)
        ranking = self._rule().run(Tables(ranking=ready), store)["ranking"]
        return Tables(ranking=ranking.with_columns(pl.col("selected") & likely))

    def reliability(self, tables: Tables) -> list[dict[str, float]]:
        """Return one row for each bin of estimates that is not empty: low, high, n, estimated, observed."""
        return reliability(tables["ranking"], tables).to_dicts()


def reliability(ranking: pl.DataFrame, tables: Tables, bins: int = 10, deepest: int = 20) -> pl.DataFrame:
    """Compare estimates with outcomes for pairs (question, unit): the first ``deepest`` units of what counts."""
    near = ranking.filter(pl.col("rank") <= deepest).drop_nulls("probability")
    return fits.reliability(labels(near, tables).select(estimate="probability", outcome="held"), bins)


@stage(sees=("gold",), fits="all")
class CalibratedTopP(ByProbability):
    """Select the most probable units that hold a share ``p`` of the question's expected number of evidence units."""

    p: Annotated[float, Field(gt=0, lt=1)] = 0.5

    def _rule(self) -> TopP:
        return TopP(p=self.p, over="probability")

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the ranking with ``probability`` and ``selected``."""
        return self._rule().run(self.probability.run(tables, store), store)


def fit_tables(*parts: Tables, depth: int = 200, l2: float = L2) -> ProbabilityModel:
    """Fit on all questions of finished runs, to save the fit and apply it elsewhere.

    What thresholds cost is computed with cross-fitted estimates, which are as sure as those of new data.
    """
    rows, matrix = [], []
    for tables in parts:
        made, of_part = features(tables.updated({"ranking": need_tokens(tables["ranking"])}), depth)
        known = labels(made.with_row_index("row"), tables).join(
            CrossFitted().fold_of(tables), on="question", how="left", maintain_order="left")
        rows.append(known)
        matrix.append(of_part[known["row"].to_numpy()])
    ranked, x = stack(rows), np.vstack(matrix)
    held, fold = ranked["held"].to_numpy(), ranked["fold"].to_numpy()
    probability = np.empty(len(held))
    for part in np.unique(fold):
        others, own = fold != part, fold == part
        probability[own] = fit(x[others], held[others], l2).estimates(x[own])
    ranking = ranked.with_columns(pl.Series("probability", probability))
    return ProbabilityModel.of(
        fit(x, held, l2), depth, [key for tables in parts for key in evidence_keys(tables)["key"]],
        kind=tuple(sorted(set().union(*map(kind_of, parts)))),
        prices={value: prices(with_always(with_value(ranking, value), 1)) for value in VALUES})


def main(argv: Sequence[str] | None = None) -> int:
    """Fit on a configured run, save the fit, and return the exit status."""
    from memlab.learn.recipe import fit_command

    return fit_command(argv, fit_tables, __doc__ or "")
