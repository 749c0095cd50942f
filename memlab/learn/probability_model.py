"""Probability that a ranked unit is evidence: features, and a logistic regression, optionally with boosted trees.

The features are the shape of the ranking, the unit's place in its session, its text, and its question. They need
neither a label nor an id, and no name of a lane, so that a fit applies to any ranking. Scores are compared within the
question (z-scores over its first ``depth`` units); sizes and ranks enter as logarithms. The trees (LightGBM; Ke et al.,
NeurIPS 2017; the extra ``learn``) learn which features matter together, the regression extends beyond the data that it
has seen.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl
import scipy  # its parts are loaded when they are used
from pydantic import model_validator

from memlab.learn import fits
from memlab.learn.fits import LogisticFit, Matrix, Regression, Values, fit_regression
from memlab.learn.ranker.trees import lightgbm
from memlab.learn.threshold import VALUES, Prices
from memlab.pipeline.question_types import FALLBACK, first_of
from memlab.pipeline.stage import Names, stage
from memlab.pipeline.tables import DIGITS, SESSION, Tables, with_text
from memlab.stages.query.classify import CLASSES
from memlab.stages.rank.units import signals_of
from memlab.support.errors import MemlabError

READS = ("ranking", "units", "classes", "questions", "turns", "texts")
"""Tables that the features are made of."""

UNIT: tuple[str, ...] = (
    "z",                 # z-score of the fused score
    "below_top",         # z of the first unit - z
    "gap",               # z - z of the unit below
    "log_rank",
    "inverse_rank",
    "log_tokens",
    "lanes_mean",        # over the lanes' own z-scores of the unit; a lane without the unit has its lowest
    "lanes_min",
    "lanes_max",
    "lanes_spread",      # standard deviation over lanes
    "lanes_share",       # share of lanes that found the unit
    "session_best",      # highest z of the unit's session
    "session_above",     # log of 1 + units of its session that rank above it
    "before_1", "before_2", "after_1", "after_2",  # z of the neighbours in its session; the lowest where not ranked
    "question_mark",     # share of its turns that end with a question mark
    "digit",             # share of its turns with a digit
    "user",              # share of its turns that a user said
    "named",             # share of its turns whose speaker the question names
)

WORDS = ("when", "where", "who", "which", "why", "how", "how many", "how long", "what", "did", "both", "kind")
"""Words of the question that are features."""

QUESTION: tuple[str, ...] = (
    *(f"class_{name}" for name in CLASSES), *(f"word_{word.replace(' ', '_')}" for word in WORDS),
    "log_length",        # characters of the question
    "top_gap",           # z of the first unit - z of the second
    "log_units",         # ranked units, at most depth
)

FEATURES: tuple[str, ...] = (*UNIT, *QUESTION, *(f"{name}_by_rank" for name in (*UNIT, *QUESTION)),
                             *(f"{name}_by_z" for name in QUESTION))
"""All features: ``_by_rank`` is times log rank, ``_by_z`` times the z-score."""


def features(tables: Tables, depth: int) -> tuple[pl.DataFrame, Matrix]:
    """Return (question, unit, rank, tokens) of each question's first ``depth`` units, and features (n, features)."""
    near = tables["ranking"].filter(pl.col("rank") <= depth).sort("question", "rank")
    rows = _of_texts(_of_sessions(_of_shape(near), tables), tables)
    questions = _of_questions(rows, tables)
    unit, question = rows.select(UNIT).to_numpy(), questions.select(QUESTION).to_numpy()
    unit, question = (np.nan_to_num(part.astype(np.float64)) for part in (unit, question))
    both = np.hstack([unit, question])
    log_rank, z = unit[:, [UNIT.index("log_rank")]], unit[:, [UNIT.index("z")]]
    return rows.select("question", "unit", "rank", "tokens"), np.hstack([both, both * log_rank, question * z])


def _z(column: str) -> pl.Expr:
    """Z-score of a column within its question; 0 where all values are equal."""
    spread = pl.col(column).std(ddof=0).over("question")
    return pl.when(spread > 1e-9).then((pl.col(column) - pl.col(column).mean().over("question")) / spread).otherwise(
        pl.when(pl.col(column).is_not_null()).then(0.0))


def _of_shape(rows: pl.DataFrame) -> pl.DataFrame:
    lanes = signals_of(rows)
    z = pl.col("z")
    rows = rows.with_columns(_z("score").alias("z"), *(_z(lane).alias(f"\0{i}") for i, lane in enumerate(lanes)))
    filled = [pl.col(f"\0{i}").fill_null(pl.col(f"\0{i}").min().over("question")).fill_null(0.0)
              for i in range(len(lanes))] or [z]
    several = pl.concat_list(filled)
    found = [pl.col(lane).is_not_null().cast(pl.Float64) for lane in lanes] or [pl.lit(1.0)]
    return rows.with_columns(
        (z.max().over("question") - z).alias("below_top"), (z - z.shift(-1).over("question")).alias("gap"),
        pl.col("rank").log().alias("log_rank"), (1 / pl.col("rank")).alias("inverse_rank"),
        pl.col("tokens").fill_null(0).log1p().alias("log_tokens"), several.list.mean().alias("lanes_mean"),
        several.list.min().alias("lanes_min"), several.list.max().alias("lanes_max"),
        several.list.std(ddof=0).alias("lanes_spread"), pl.mean_horizontal(found).alias("lanes_share"),
        (z.max() - z.filter(pl.col("rank") > 1).max()).over("question").alias("top_gap"),
        pl.len().over("question").log().alias("log_units"))


def _of_sessions(rows: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    places = tables["units"].select("unit", *SESSION, pl.col("turns").list.first().alias("turn"))
    own = ["question", "session"]
    rows = rows.join(places, on="unit", how="left", maintain_order="left").with_columns(
        pl.col("z").max().over(own).alias("session_best"),
        (pl.int_range(1, pl.len() + 1).over(own)).log().alias("session_above"))
    near = rows.select(*own, "turn", "z").unique([*own, "turn"], keep="first", maintain_order=True)
    for name, step in (("before_1", 1), ("before_2", 2), ("after_1", -1), ("after_2", -2)):
        moved = near.select(*own, pl.col("turn") + step, pl.col("z").alias(name))
        rows = rows.join(moved, on=[*own, "turn"], how="left", maintain_order="left").with_columns(
            pl.col(name).fill_null(pl.col("z").min().over("question")))
    return rows


def _of_texts(rows: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    units = tables["units"].join(rows.select("unit").unique(), on="unit", how="semi")
    turns = with_text(tables["turns"], tables["texts"]).select(
        *SESSION, pl.col("turn").alias("turns"), "speaker", (pl.col("role") == "user").alias("user"),
        pl.col("text").str.contains(r"\?\s*$").alias("question_mark"),
        pl.col("text").str.contains(r"\d").alias("digit"))
    said = units.select("unit", *SESSION, "turns").explode("turns").join(turns, on=[*SESSION, "turns"])
    of_text = said.group_by("unit").agg(pl.col("question_mark", "digit", "user").mean())
    speakers = said.group_by("unit", "speaker").agg(pl.len().alias("turns")).with_columns(
        (pl.col("turns") / pl.col("turns").sum().over("unit")).alias("share"))
    asked = with_text(tables["questions"], tables["texts"]).select("question", pl.col("text").str.to_lowercase())
    corpora = said.select("unit", "corpus").unique()
    names = speakers.drop_nulls("speaker").join(corpora, on="unit").select("corpus", "speaker").unique()
    in_question = tables["questions"].select("question", "corpus").join(names, on="corpus").join(
        asked, on="question").filter(pl.col("text").str.contains(pl.col("speaker").str.to_lowercase(), literal=True))
    named = rows.select("question", "unit").join(speakers, on="unit").join(
        in_question.select("question", "speaker"), on=["question", "speaker"]).group_by("question", "unit").agg(
        pl.col("share").sum().alias("named"))
    return rows.join(of_text, on="unit", how="left", maintain_order="left").join(
        named, on=["question", "unit"], how="left", maintain_order="left").with_columns(pl.col("named").fill_null(0.0))


def _of_questions(rows: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    kinds = {question: FALLBACK.get(kind, kind) for question, kind in first_of(tables["classes"]).items()}
    texts = with_text(tables["questions"], tables["texts"]).select(
        "question", pl.col("text").fill_null("").str.to_lowercase(),
        pl.col("question").replace_strict(kinds, default="", return_dtype=pl.String).alias("class"))
    of_question = texts.select(
        "question", *((pl.col("class") == name).cast(pl.Float64).alias(f"class_{name}") for name in CLASSES),
        *(pl.col("text").str.contains(rf"\b{word}\b").cast(pl.Float64).alias(f"word_{word.replace(' ', '_')}")
          for word in WORDS), pl.col("text").str.len_chars().log1p().alias("log_length"))
    return rows.join(of_question, on="question", how="left", maintain_order="left")


@stage
class ProbabilityModel(LogisticFit):
    """A fit of P(the unit is evidence), for rankings of its ``kind`` (``kind_of``).

    ``prices`` has, for each kind of value (``VALUES``), what its thresholds cost on the data that it was fitted on, by
    estimates of models of the other folds.
    """

    FORMAT: ClassVar = "memlab-probability-1"
    FEATURES: ClassVar = FEATURES

    kind: Names
    prices: dict[str, Prices]

    @model_validator(mode="after")
    def _has_prices(self) -> ProbabilityModel:
        if set(self.prices) != set(VALUES):
            raise ValueError("it needs the prices of unit, token and share")
        return self


def load(path: Path) -> ProbabilityModel:
    """Read a fit; raise MemlabError if the file is missing, damaged, or of another version."""
    return fits.load(path, ProbabilityModel, "a probability fit", "fit one with memlab train probability")


def fit(matrix: Matrix, labels: Values, l2: float) -> Regression:
    """Fit on features (n, features) and labels (n,) of 0 and 1; raise MemlabError unless both labels occur."""
    if len(np.unique(labels)) < 2:
        raise MemlabError("no ranked unit is evidence to fit on, or all are", where="learn/probability",
                          fix="use data with evidence labels and a ranking that finds some of it")
    return fit_regression(matrix, labels, l2)


ModelName = Literal["logistic", "blend"]

ROUNDS = 200
"""Trees of a fit: few and small, for a few thousand units of evidence."""

SETTINGS = {"objective": "binary", "learning_rate": 0.04, "num_leaves": 8, "min_data_in_leaf": 40, "lambda_l2": 5.0,
            "feature_fraction": 0.5, "bin_construct_sample_cnt": 10**8, "deterministic": True, "force_row_wise": True,
            "num_threads": 1, "verbosity": -1}
"""All rows choose the bins, and none is left out of a tree, so that the order of questions decides nothing."""

PLAIN = len(UNIT) + len(QUESTION)
"""The first features of a row, without products with rank and z-score: trees find those by themselves."""


@dataclasses.dataclass(frozen=True)
class Blend:
    """A fitted pair of models, blended by the mean of their log-odds.

    ``trees`` is a LightGBM booster over the first ``PLAIN`` features. The blend has a lower log loss than either on
    held-out folds of all dev data.
    """

    regression: Regression
    trees: Any

    def estimates(self, matrix: Matrix) -> Values:
        """Return the probability of each row, (n,), for features (n, features); log-odds are rounded as scores are."""
        odds = scipy.special.logit(self.regression.estimates(matrix).clip(1e-12, 1 - 1e-12)) + self.trees.predict(
            matrix[:, :PLAIN], raw_score=True, num_threads=1)
        return np.asarray(scipy.special.expit((odds / 2).round(DIGITS)))


def fit_blend(matrix: Matrix, labels: Values, l2: float, seed: int) -> Blend:
    """Fit both models on features (n, features) and labels (n,) of 0 and 1; ``l2`` is the regression's penalty.

    Raises MemlabError unless both labels occur, or if LightGBM is not installed.
    """
    library = lightgbm("the blend", "learn/probability", ", or learn.probability.model=logistic")
    regression = fit(matrix, labels, l2)
    rows = library.Dataset(matrix[:, :PLAIN], labels, params={"verbosity": -1})
    return Blend(regression, library.train({**SETTINGS, "seed": seed}, rows, ROUNDS))
