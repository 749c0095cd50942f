"""Blend of two probability models, by the mean of their log-odds: logistic regression and boosted trees.

The trees (LightGBM; Ke et al., NeurIPS 2017; the extra ``learn``) learn which features matter together, the regression
extends beyond the data that it has seen. The blend has a lower log loss than either on held-out folds of all dev data.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import numpy as np
import scipy  # its parts are loaded when they are used

from memlab.errors import MemlabError
from memlab.learn.probability.features import QUESTION, UNIT, Matrix
from memlab.learn.probability.model import Weights, fit
from memlab.learn.probability.threshold import Values
from memlab.tables import DIGITS

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
    """A fitted pair of models; ``trees`` is a LightGBM booster over the first ``PLAIN`` features."""

    regression: Weights
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
    try:
        import lightgbm
    except ImportError as error:
        raise MemlabError("the blend needs LightGBM, which is not installed", where="learn/probability",
                          fix="pip install 'memlab[learn]', or learn.probability.model=logistic") from error
    regression = fit(matrix, labels, l2)
    rows = lightgbm.Dataset(matrix[:, :PLAIN], labels, params={"verbosity": -1})
    return Blend(regression, lightgbm.train({**SETTINGS, "seed": seed}, rows, ROUNDS))
