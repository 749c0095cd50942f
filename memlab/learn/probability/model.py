"""Probability model: logistic regression on features of ranked units, its fit, its estimates, and its JSON file."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import numpy as np
import scipy  # its parts are loaded when they are used
from pydantic import Field, ValidationError, model_validator
from threadpoolctl import threadpool_limits

from memlab.errors import MemlabError
from memlab.learn.probability.features import FEATURES, Matrix
from memlab.learn.probability.threshold import VALUES, Numbers, Prices, Values
from memlab.stage import Names, stage
from memlab.tables import DIGITS

FORMAT = "memlab-probability-1"
Depth = Annotated[int, Field(ge=1)]


@stage
class ProbabilityModel:
    """A fitted model: logit P(the unit is evidence) = bias + sum of weight x (feature - mean) / scale.

    ``prices`` has, for each kind of value (``VALUES``), what its thresholds cost on the data that it was fitted on, by
    estimates of models of the other folds.
    """

    format: str
    depth: Depth
    features: Names
    mean: Numbers
    scale: Numbers
    weights: Numbers
    bias: float
    questions: int
    prices: dict[str, Prices]

    @model_validator(mode="after")
    def _matches_this_version(self) -> ProbabilityModel:
        if self.format != FORMAT or self.features != FEATURES:
            raise ValueError(f"made by another version: expected format {FORMAT} and its {len(FEATURES)} features")
        if not len(self.mean) == len(self.scale) == len(self.weights) == len(FEATURES):
            raise ValueError(f"mean, scale and weights need {len(FEATURES)} numbers each")
        if not np.isfinite([*self.mean, *self.scale, *self.weights, self.bias]).all() or min(self.scale) <= 0:
            raise ValueError("it holds an impossible number")
        if set(self.prices) != set(VALUES):
            raise ValueError("it needs the prices of unit, token and share")
        return self

    def estimates(self, matrix: Matrix) -> Values:
        """Return the probability of each row, (n,), for features (n, features)."""
        return Weights(np.array(self.mean), np.array(self.scale), np.array(self.weights), self.bias).estimates(matrix)


@dataclasses.dataclass(frozen=True)
class Weights:
    """Weights (features,) of a logistic regression on standardised features, and its bias."""

    mean: Values
    scale: Values
    weights: Values
    bias: float

    def estimates(self, matrix: Matrix) -> Values:
        """Return the probability of each row, (n,), for features (n, features).

        Log-odds are rounded as scores are, so that machines agree on the order.
        """
        logit = (matrix - self.mean) / self.scale @ self.weights + self.bias
        return np.asarray(scipy.special.expit(logit.round(DIGITS)))


def fit(matrix: Matrix, labels: Values, l2: float) -> Weights:
    """Fit on features (n, features) and labels (n,) of 0 and 1 by Newton's method with halved steps.

    The penalty l2 / 2 x |weights|^2 is added to the loss summed over rows. The loss is convex, so the result depends on
    the data alone. Raises MemlabError unless both labels occur.
    """
    share = float(labels.mean()) if len(labels) else 0.0
    if not 0 < share < 1:
        raise MemlabError("no ranked unit is evidence to fit on, or all are", where="learn/probability",
                          fix="use data with evidence labels and a ranking that finds some of it")
    mean, scale = matrix.mean(axis=0), matrix.std(axis=0)
    scale = np.where(scale > 1e-9, scale, 1.0)
    x = np.hstack([(matrix - mean) / scale, np.ones((len(matrix), 1))])
    penalty = np.append(np.full(matrix.shape[1], l2), 0.0)

    def loss(beta: Values) -> float:
        logit = x @ beta
        return float(np.logaddexp(0, logit).sum() - labels @ logit + penalty @ beta**2 / 2)

    beta = np.append(np.zeros(matrix.shape[1]), np.log(share / (1 - share)))
    with threadpool_limits(limits=1):  # small products: waiting threads cost 10 x on a busy machine
        current = loss(beta)
        for _ in range(100):
            p = scipy.special.expit(x @ beta)
            gradient = x.T @ (p - labels) + penalty * beta
            step = np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x + np.diag(penalty), gradient)
            length = 1.0
            while (value := loss(beta - length * step)) > current - 1e-4 * length * (gradient @ step) and length > 1e-9:
                length /= 2
            if current - value < 1e-9 * max(abs(current), 1.0):
                break
            beta, current = beta - length * step, value
    return Weights(mean, scale, beta[:-1], float(beta[-1]))


def save(model: ProbabilityModel, path: Path) -> None:
    """Write a fit as JSON."""
    path.write_text(json.dumps(dataclasses.asdict(model), indent=1) + "\n", encoding="utf-8")


def load(path: Path) -> ProbabilityModel:
    """Read a fit; raise MemlabError if the file is missing, damaged, or of another version."""
    fix = "fit one with python -m memlab.learn.probability"
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        return ProbabilityModel(**{**fields, "prices": {k: Prices(**v) for k, v in fields["prices"].items()}})
    except OSError as error:
        raise MemlabError(f"cannot be read ({error.strerror})", where=str(path), fix=fix) from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else repr(error)
        raise MemlabError(f"is not a probability fit: {reason}", where=str(path), fix=fix) from error
