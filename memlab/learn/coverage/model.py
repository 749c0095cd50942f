"""Coverage model: logistic regression, its fit, its estimates, and its JSON file."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
import scipy  # its parts are loaded when they are used
from pydantic import Field, ValidationError, model_validator
from threadpoolctl import threadpool_limits

from memlab.errors import MemlabError
from memlab.learn.coverage.features import FEATURES
from memlab.learn.labels import EvidenceLevel
from memlab.stage import Names, stage

FORMAT = "memlab-coverage-1"
Depth = Annotated[int, Field(ge=1)]
Numbers = Annotated[tuple[float, ...], Field(strict=False)]


@stage
class CoverageModel:
    """A fitted model: logit P(complete | K) = bias + sum of weight x (feature - mean) / scale."""

    format: str
    level: EvidenceLevel
    depth: Depth
    features: Names
    mean: Numbers
    scale: Numbers
    weights: Numbers
    bias: float
    questions: int

    @model_validator(mode="after")
    def _matches_this_version(self) -> CoverageModel:
        if self.format != FORMAT or self.features != FEATURES:
            raise ValueError(f"made by another version: expected format {FORMAT} and its {len(FEATURES)} features")
        if not len(self.mean) == len(self.scale) == len(self.weights) == len(FEATURES):
            raise ValueError(f"mean, scale and weights need {len(FEATURES)} numbers each")
        if not np.isfinite([*self.mean, *self.scale, *self.weights, self.bias]).all() or min(self.scale) <= 0:
            raise ValueError("it holds an impossible number")
        return self


def fit(shape: pl.DataFrame, needed: pl.DataFrame, level: EvidenceLevel, depth: int,
        l2: float = 1.0) -> CoverageModel:
    """Fit on the rows of ``features`` whose question is in ``needed`` (question, complete).

    Each question has a total weight of 1, each pair (question, K) a weight in proportion to 1 / K: every doubling of K
    counts the same, since the choice is among small K and large ones are many. The penalty l2 / 2 x |weights|^2 is
    added to the sum over questions. The loss is convex, so the result depends on the data alone.
    """
    rows = shape.join(needed.select("question", "complete"), on="question").sort("rank", *FEATURES, "complete")
    if not rows.height:
        raise MemlabError("no ranked question has evidence to fit on", where="learn/coverage")
    x = rows.select(FEATURES).to_numpy()                                                   # (n, features)
    y = (rows["rank"] >= rows["complete"].fill_null(depth + 1)).to_numpy().astype(float)   # (n,)
    weight = rows.select((1 / pl.col("rank")) / (1 / pl.col("rank")).sum().over("question")).to_series().to_numpy()
    mean, scale = x.mean(axis=0), x.std(axis=0)
    scale = np.where(scale > 1e-12, scale, 1.0)
    x = (x - mean) / scale

    def loss(beta: np.ndarray) -> tuple[float, np.ndarray]:
        logit = x @ beta[:-1] + beta[-1]
        value = weight @ (np.logaddexp(0, logit) - y * logit) + l2 / 2 * beta[:-1] @ beta[:-1]
        gradient = weight * (scipy.special.expit(logit) - y)
        return float(value), np.append(x.T @ gradient + l2 * beta[:-1], gradient.sum())

    def hessian(beta: np.ndarray) -> np.ndarray:
        probability = scipy.special.expit(x @ beta[:-1] + beta[-1])
        second = weight * probability * (1 - probability)
        border = x.T @ second
        return np.block([[x.T @ (x * second[:, None]) + l2 * np.eye(x.shape[1]), border[:, None]],
                         [border[None, :], np.array([[second.sum()]])]])

    with threadpool_limits(limits=1):  # small products: waiting threads cost 30 x on a busy machine
        beta = scipy.optimize.minimize(loss, np.zeros(len(FEATURES) + 1), jac=True, hess=hessian, method="trust-exact",
                        options={"gtol": 1e-6}).x
    return CoverageModel(format=FORMAT, level=level, depth=depth, features=FEATURES, mean=tuple(mean.tolist()),
                         scale=tuple(scale.tolist()), weights=tuple(beta[:-1].tolist()), bias=float(beta[-1]),
                         questions=rows["question"].n_unique())


def apply(model: CoverageModel, shape: pl.DataFrame) -> pl.DataFrame:
    """Return (question, rank, coverage) for the rows of ``features``; coverage never falls with rank."""
    x = (shape.select(FEATURES).to_numpy() - np.array(model.mean)) / np.array(model.scale)
    probability = scipy.special.expit(x @ np.array(model.weights) + model.bias)
    rows = shape.select("question", "rank", pl.Series("coverage", probability)).sort("question", "rank")
    return rows.with_columns(pl.col("coverage").cum_max().over("question"))


def save(model: CoverageModel, path: Path) -> None:
    """Write a fit as JSON."""
    path.write_text(json.dumps(dataclasses.asdict(model), indent=1) + "\n", encoding="utf-8")


def load(path: Path) -> CoverageModel:
    """Read a fit; raise MemlabError if the file is missing, damaged, or of another version."""
    fix = "fit one with python -m memlab.learn.coverage"
    try:
        return CoverageModel(**json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise MemlabError(f"cannot be read ({error.strerror})", where=str(path), fix=fix) from error
    except (ValueError, TypeError, RecursionError) as error:  # not JSON, not a fit, or of another version
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise MemlabError(f"is not a coverage fit: {reason}", where=str(path), fix=fix) from error
