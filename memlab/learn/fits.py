"""Saved fits, to apply to other data: a logistic regression, and JSON files of fits."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar

import numpy as np
import polars as pl
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter, ValidationError, model_validator
from threadpoolctl import threadpool_limits

from memlab.data.dataset import session_texts
from memlab.pipeline.stage import LocalPath, Names, name_of, stage
from memlab.pipeline.tables import DIGITS, SESSION, Tables, text_hash
from memlab.support.errors import MemlabError
from memlab.support.files import atomic_write

Matrix = NDArray[np.float64]
Values = NDArray[np.float64]
Numbers = Annotated[tuple[float, ...], Field(strict=False)]
Depth = Annotated[int, Field(ge=1)]
Fit = TypeVar("Fit")

MAX_BYTES = 64 * 2**20
"""Largest file that is read."""


@dataclasses.dataclass(frozen=True)
class Regression:
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


def fit_regression(matrix: Matrix, labels: Values, l2: float, weight: Values | None = None) -> Regression:
    """Fit on features (n, features) and labels (n,) of 0 and 1 by Newton's method with halved steps.

    The penalty l2 / 2 x |weights|^2 is added to the loss summed over rows, each times its ``weight`` (n,), by default
    1. The loss is convex, so the result depends on the data alone.
    """
    weight = np.ones(len(labels)) if weight is None else weight
    mean, scale = matrix.mean(axis=0), matrix.std(axis=0)
    scale = np.where(scale > 1e-9, scale, 1.0)
    x = np.hstack([(matrix - mean) / scale, np.ones((len(matrix), 1))])
    penalty = np.append(np.full(matrix.shape[1], l2), 0.0)

    def loss(beta: Values) -> float:
        logit = x @ beta
        return float((weight * np.logaddexp(0, logit)).sum() - (weight * labels) @ logit + penalty @ beta**2 / 2)

    share = float(labels.mean().clip(1e-3, 1 - 1e-3))
    beta = np.append(np.zeros(matrix.shape[1]), np.log(share / (1 - share)))
    with threadpool_limits(limits=1):  # small products: waiting threads cost 10 x on a busy machine
        current = loss(beta)
        for _ in range(100):
            p = scipy.special.expit(x @ beta)
            gradient = x.T @ (weight * (p - labels)) + penalty * beta
            step = np.linalg.solve((x * (weight * p * (1 - p))[:, None]).T @ x + np.diag(penalty), gradient)
            length = 1.0
            while (value := loss(beta - length * step)) > current - 1e-4 * length * (gradient @ step) and length > 1e-9:
                length /= 2
            if current - value < 1e-9 * max(abs(current), 1.0):
                break
            beta, current = beta - length * step, value
    return Regression(mean, scale, beta[:-1], float(beta[-1]))


@stage
class LogisticFit:
    """A saved regression over the first ``depth`` units: logit P = bias + sum of weight x (feature - mean) / scale.

    ``learnt`` are the keys of the questions that it was fitted on (``evidence_keys``).
    """

    FORMAT: ClassVar[str]
    FEATURES: ClassVar[tuple[str, ...]]

    format: str
    depth: Depth
    features: Names
    mean: Numbers
    scale: Numbers
    weights: Numbers
    bias: float
    learnt: Names

    @model_validator(mode="after")
    def _matches_this_version(self) -> LogisticFit:
        count = len(self.FEATURES)
        if self.format != self.FORMAT or self.features != self.FEATURES:
            raise ValueError(f"made by another version: expected format {self.FORMAT} and its {count} features")
        if not len(self.mean) == len(self.scale) == len(self.weights) == count:
            raise ValueError(f"mean, scale and weights need {count} numbers each")
        if not np.isfinite([*self.mean, *self.scale, *self.weights, self.bias]).all() or min(self.scale) <= 0:
            raise ValueError("it holds an impossible number")
        return self

    @classmethod
    def of(cls, regression: Regression, depth: int, learnt: Iterable[str], **others: Any) -> Self:
        """Return the form of a regression that can be saved; ``others`` are the fields of the subclass."""
        return cls(format=cls.FORMAT, depth=depth, features=cls.FEATURES, mean=tuple(regression.mean.tolist()),
                   scale=tuple(regression.scale.tolist()), weights=tuple(regression.weights.tolist()),
                   bias=regression.bias, learnt=tuple(sorted({*learnt})), **others)

    def estimates(self, matrix: Matrix) -> Values:
        """Return the probability of each row, (n,), for features (n, features)."""
        mean, scale, weights = map(np.array, (self.mean, self.scale, self.weights))
        return Regression(mean, scale, weights, self.bias).estimates(matrix)


def save(fit: Any, path: Path) -> None:
    """Write a fit, a dataclass, as JSON."""
    atomic_write(path, json.dumps(dataclasses.asdict(fit), separators=(",", ":")) + "\n")


def load(path: Path, kind: type[Fit], what: str, fix: str) -> Fit:
    """Read a fit; raise MemlabError if the file is missing, too large, damaged, or of another version.

    Args:
        path: A file that ``save`` wrote.
        kind: The class of the fit.
        what: What the file should hold, for the message.
        fix: How to get such a file, for the message.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise MemlabError(f"is too large for {what}", where=str(path), fix=fix)
        return TypeAdapter(kind).validate_json(path.read_bytes())
    except OSError as error:
        raise MemlabError(f"cannot be read ({error.strerror})", where=str(path), fix=fix) from error
    except ValidationError as error:  # not JSON, not a fit, or of another version
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise MemlabError(f"is not {what}: {f'{place}: ' if place else ''}{first['msg'].removeprefix('Value error, ')}",
                          where=str(path), fix=fix) from error


def evidence_keys(tables: Tables) -> pl.DataFrame:
    """Return (question, key) of the questions with evidence: a digest of the words and of the evidence's sessions.

    It finds a question again in another file of the same data, and does not take another one of the same words for it.
    """
    asked = tables["questions"].select("question", *SESSION[:1], "text_id")
    sessions = asked.join(tables["evidence"].select("question", "session").unique(), on="question").join(
        session_texts(tables["turns"]), on=SESSION)
    keys = sessions.sort("question", "content").group_by("question", "text_id", maintain_order=True).agg(
        pl.col("content").str.join(" "))
    return keys.select("question", pl.format("{} {}", "text_id", "content").map_elements(
        lambda text: text_hash(text)[:12], pl.String).alias("key"))


def stack(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the rows of several data sets, whose questions get numbers of their own."""
    return pl.concat(part.with_columns(pl.col("question").cast(pl.Int64) + (i << 32)) for i, part in enumerate(parts))


def count_learnt(tables: Tables, keys: Collection[str]) -> int:
    """Return the number of questions that a fit with these keys has learned."""
    return int(evidence_keys(tables)["key"].is_in(keys).sum()) if keys else 0


def fit_digest(path: Path) -> str:
    """Return the digest of a saved fit, by which results are identified, whatever its path."""
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


@stage
class SavedFit:
    """A stage that applies the fit in the file ``path``, or one of a folder; all are read when the stage is made."""

    path: LocalPath

    @model_validator(mode="after")
    def _readable(self) -> SavedFit:
        self.fits()
        return self

    def fits(self) -> list[Any]:
        """Return the fit, or those of a folder; raise MemlabError if a file is no such fit."""
        raise NotImplementedError

    def number_seen(self, tables: Tables) -> int:
        """Return the number of questions on whose labels one of the fits was fitted."""
        return count_learnt(tables, {key for fit in self.fits() for key in fit.learnt})

    def files(self) -> list[Path]:
        """Return the file, or those of the folder."""
        return sorted(self.path.glob("*.json")) if self.path.is_dir() else [self.path]

    def identity(self) -> dict[str, Any]:
        """Describe the content of the fits, not their path."""
        return {"is": name_of(type(self)), "fits": [fit_digest(file) for file in self.files()]}


def reliability(pairs: pl.DataFrame, bins: int) -> pl.DataFrame:
    """Compare estimates with outcomes: (low, high, n, estimated, observed), one row for each bin that is not empty.

    ``pairs`` has an estimate and an outcome, 0 or 1, in each row. A calibrated model has estimated = observed.
    """
    return pairs.with_columns((pl.col("estimate") * bins).floor().clip(0, bins - 1).alias("bin")).group_by("bin").agg(
        (pl.col("bin").first() / bins).alias("low"), ((pl.col("bin").first() + 1) / bins).alias("high"),
        pl.len().alias("n"), pl.col("estimate").mean().alias("estimated"), pl.col("outcome").mean().alias("observed"),
    ).sort("low").drop("bin")
